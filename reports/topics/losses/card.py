"""What several GPUs lose most to, as a card of the first page."""

from collections.abc import Mapping
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import task_name
from reports.analysis.time_split import Part
from reports.display.card import Card
from reports.display.html import Html, answer_of_page
from reports.sets.version import Version
from reports.topics.losses.losses import Loss, losses
from suite.files.wording import counted
from suite.schema.record import Case
from suite.statistics.core_speed import SLOWED, core_speed

NAMES: Final[Mapping[Part, str]] = {
    "physics": "slower physics",
    "rendering": "slower rendering",
    "rest of steps": "slower environment steps",
    "rest of rollout": "a slower rollout",
    "learning": "slower learning",
    "all-reduce": "exchanging gradients",
    "waiting": "waiting for the slowest process",
}
WORTH_A_BAR: Final = 0.01


def opening(version: Version) -> Html:
    """Return the page's answer: what several GPUs lose most to."""
    found = card(version)
    if found is None:
        return answer_of_page("No curve over several GPUs surely loses a part of its ideal speed.")
    return answer_of_page(f"{found.title}. {found.text}")


def card(version: Version) -> Card | None:
    """Describe the weak scaling curve with the most GPUs that loses most; None if no curve surely loses."""
    found = loses_most(version)
    if found is None:
        return None
    name, loss, case = found
    return _card(loss, case, next(one.campaign for one in version.scaling if one.name == name))


def loses_most(version: Version) -> tuple[str, Loss, Case] | None:
    """Return the name of a set, the loss that the card is of, and its case."""
    found = [
        (one.name, loss, result.case)
        for one in version.scaling
        for loss in losses(one.campaign)
        for result in one.campaign.results
        if result.case.case_id == loss.case_id and result.case.scaling == "weak" and loss.is_sure
    ]
    return max(found, key=lambda each: (each[1].world_size, each[1].lost), default=None)


def _card(loss: Loss, case: Case, campaign: Campaign) -> Card:
    parts = sorted(loss.parts.items(), key=lambda part: -part[1])
    most = parts[0][0]
    shown = {"work done": 1 - loss.lost, **{NAMES[name]: lost for name, lost in parts if lost >= WORTH_A_BAR}}
    low, high = loss.lost_interval or (loss.lost, loss.lost)
    return Card(
        title=f"{counted(loss.world_size, 'GPU')} lose most to {NAMES[most]}",
        text=f"{task_name(case.task)} with {case.rl_library}, {case.num_envs:,} environments on each GPU:"
        f" {100 * loss.lost:.0f} % of ideal is lost ({100 * low:.0f} to {100 * high:.0f})."
        f"{_slow_cores(case, campaign) if most == 'waiting' else ''}",
        bars={name: (share / max(shown.values()), f"{100 * share:.0f} %") for name, share in shown.items()},
        link="Where the time goes",
        address="findings.html",
    )


def _slow_cores(case: Case, campaign: Campaign) -> str:
    """Return what is known of the CPU core of the slowest process, and of how long its GPU had work."""
    records = [record for result in campaign.results if result.case == case for record in result.completed]
    found, busy = core_speed(records, campaign.fastest_probe_s), campaign.inside[case.case_id].gpu_utilisation_percent
    if found is None or busy is None:
        return ""
    return (
        f" The CPU core of the slowest process took over {SLOWED:g} times as long as at best in {found.slowed} of"
        f" {counted(found.looks, 'probe')}, and any kernel ran on a GPU in {busy.median:.0f} % of the time."
    )
