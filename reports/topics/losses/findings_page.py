"""What a version's results say together: the page that says what was learned from measuring."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import task_name
from reports.analysis.learned import Learned
from reports.analysis.seeds import seeds
from reports.analysis.time_split import Part
from reports.analysis.time_to_reward import SMOOTHING_WINDOW
from reports.display.addresses import address_of_series
from reports.display.card import Card
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    count,
    heading,
    html_table,
    link,
    machine_cell,
    paragraph,
    percent,
    ratio,
    together,
)
from reports.display.resource_tables import slowed_cores_table
from reports.sets.version import ResultSet, Version
from reports.topics.losses import findings
from reports.topics.losses.findings import Filling, Places, Split
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


def has_findings(version: Version) -> bool:
    """Whether there is anything measured on GPUs; of a CPU only the chain itself is shown."""
    return any(one.campaign.only(lambda result: result.case.device == "cuda").completed for one in version.scaling)


def iterations(version: Version) -> Html:
    """Where an iteration goes, at the fewest and the most GPUs of every series."""
    found = [(one, findings.splits(one.campaign)) for one in version.scaling]
    alone = [split for _, those in found for split in those if split.between_ranks is None]
    if not alone:
        return paragraph("No case on one GPU says what its iterations go to.")
    learning = [split.learning for split in alone]
    said = (
        f"In series that vary GPUs or stacks, on one GPU, learning takes {percent(min(learning))} to"
        f" {percent(max(learning))} of an iteration, and more than half in"
        f" {sum(share > findings.HALF for share in learning)} of {counted(len(alone), 'case')}."
    )
    if busy := [split.busy_percent for split in alone if split.busy_percent is not None]:
        said += (
            f" Any kernel at all runs in {min(busy):.0f} to {max(busy):.0f} % of the time there, where a sampler"
            " looked: in the rest the GPU has nothing to do."
        )
    return together([paragraph(said), _by_set(version, found, _splits)])


def sizes(version: Version) -> Html:
    """How full a GPU gets with more environments."""
    parts: list[Displayed] = []
    for one in version.scaling:
        for series in findings.sweeps(one.campaign):
            if found := findings.fillings(series):
                name = series.rows[0].series
                address = address_of_series(series.rows[0].task, name)
                parts += [heading(link(f"{name}: {one.title}" if one.title else name, address))]
                parts += [part for those in found for part in (paragraph(_filling(those)), _fillings(one, those))]
    return together(parts or [paragraph("No series of this version varies environments alone.")])


def places(version: Version) -> Html:
    """The same training in several places."""
    found = findings.places_of_version(version)
    if not found:
        return paragraph("Nothing ran on more than one machine.")
    said = (
        f"{counted(len(found), 'training')} ran on several machines with the same kind of GPU. The quickest one"
        f" makes {ratio(found[-1].ratio)} to {ratio(found[0].ratio)} times the frames per"
        " second of the slowest. Speed-ups compare within a set only."
    )
    least = sum(one.is_least for one in found)
    if least:
        said += (
            f" In {least} of them other runs may have used the quickest machine at the same time, so the true ratio is"
            " at least this large."
        )
    return together([paragraph(said), _places(found, version.machine_names)])


def cores(version: Version) -> Html:
    """What slowed cores did, set by set."""
    return slowed_cores_table(version.scaling) or paragraph("No set has slowed cores, or none was probed.")


def learning(version: Version) -> Html:
    """What strong scaling with a fixed minibatch does to learning."""
    of_seeds = seeds(version.learned, (), lambda _: ())
    found = [(one, findings.learned_in_strong_scaling(one.campaign, of_seeds)) for one in version.scaling]
    if not any(those for _, those in found):
        return paragraph("No strong series with a fixed minibatch reports rewards at several numbers of GPUs.")
    return _by_set(version, found, lambda one, those: together(_learned(one, each) for each in those))


def _by_set[T](
    version: Version,
    found: Sequence[tuple[ResultSet, Sequence[T]]],
    show: Callable[[ResultSet, Sequence[T]], Displayed],
) -> Html:
    """Sets that have nothing of it are left out."""
    parts: list[Displayed] = []
    for one, those in found:
        if those:
            parts += [*([heading(one.title)] if version.must_name_sets else []), show(one, those)]
    return together(parts)


def _splits(one: ResultSet, found: Sequence[Split]) -> Html:
    return html_table(
        ["Case", "Rollout", "Learning", "All-reduce and waiting", "Any kernel runs", "W a GPU"],
        (
            [
                split.case_id,
                percent(split.rollout),
                percent(split.learning),
                percent(split.between_ranks),
                percent(None if split.busy_percent is None else split.busy_percent / 100),
                count(split.power_w),
            ]
            for split in found
        ),
        label=f"Where iterations go {one.title}".strip(),
    )


def _filling(found: Sequence[Filling]) -> str:
    least, most = found[0], found[-1]
    half = findings.with_half_of_most(found)
    middle = f"half of the most needs {count(half.num_envs if half else None)}"
    if half is least:
        middle = "the fewest that ran have half of the most already, so fewer may have it too"
    return (
        f"{least.who}: environment steps alone go from {count(least.fps.get('step'))} a second with {least.num_envs:,}"
        f" environments to {count(most.fps.get('step'))} with {most.num_envs:,}; {middle}. With learning it is"
        f" {count(least.fps.get('total'))} and {count(most.fps.get('total'))}."
    )


def _fillings(one: ResultSet, found: Sequence[Filling]) -> Html:
    return html_table(
        ["Case", "Step FPS", "Step, of the most", "Total FPS", "Total, of the most", "Any kernel runs", "W"],
        (
            [
                size.case_id,
                count(size.fps.get("step")),
                percent(size.of_most.get("step")),
                count(size.fps.get("total")),
                percent(size.of_most.get("total")),
                percent(None if size.busy_percent is None else size.busy_percent / 100),
                count(size.power_w),
            ]
            for size in found
        ),
        label=f"How full a GPU gets {one.title} {found[0].case_id}",
    )


def _places(found: Sequence[Places], names: Mapping[str, str]) -> Html:
    """``names``: of machines, by label."""
    return html_table(
        [
            "Training, as the case",
            "Slowest",
            "FPS of the slowest",
            "Quickest",
            "FPS of the quickest",
            "Times",
            "Machines",
        ],
        (
            [
                one.case_id,
                machine_cell(names.get(one.slowest, one.slowest)),
                count(one.fps[one.slowest]),
                machine_cell(
                    names.get(one.quickest, one.quickest) + (" (perhaps beside others)" if one.is_least else "")
                ),
                count(one.fps[one.quickest]),
                ratio(one.ratio),
                str(len(one.fps)),
            ]
            for one in found
        ),
        label="Cases on several machines",
        text_headings=("Slowest", "Quickest"),
    )


def _learned(one: ResultSet, found: Sequence[Learned]) -> Html:
    first, last = found[0], found[-1]
    said = (
        f"After {first.iterations} iterations of as many frames: a reward of {first.reward:.3g} with"
        f" {counted(first.world_size, 'GPU')} and {first.optimiser_steps} optimiser steps an iteration,"
        f" {last.reward:.3g} with {counted(last.world_size, 'GPU')} and {last.optimiser_steps}. A reward is the"
        f" median of the last {SMOOTHING_WINDOW} iterations. {_own_seeds(first)}"
    )
    if any(each.of_seeds for each in found):
        said += (
            " Other seeds, with as many frames and steps on any machine and number of ranks, show how far seeds differ."
        )
    table = html_table(
        ["Case", "Optimiser steps an iteration", "Iterations", "Reward", "Other seeds: worst, median, best"],
        (
            [each.case_id, str(each.optimiser_steps), str(each.iterations), f"{each.reward:.3g}", _of_seeds(each)]
            for each in found
        ),
        label=f"Rewards in strong scaling {one.title} {first.case_id}",
    )
    return together([paragraph(said), table])


def _own_seeds(first: Learned) -> str:
    if len(first.seeds) == 1:
        return f"That is one seed, {first.seeds[0]}."
    return f"It is the median over {len(first.seeds)} seeds."


def _of_seeds(each: Learned) -> str:
    if not each.of_seeds:
        return MISSING
    worst, best = each.of_seeds[0], each.of_seeds[-1]
    return f"{worst:.3g}, {statistics.median(each.of_seeds):.3g}, {best:.3g} of {len(each.of_seeds)}"
