"""What scaling loses and to what, and what the parts of an iteration take alone: sections of the page *Findings*."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.time_split import PARTS
from reports.display.html import (
    Displayed,
    Html,
    bullets,
    heading,
    html_table,
    machine_cell,
    paragraph,
    percent,
    percent_interval,
    ratio,
    together,
)
from reports.sets.version import Version
from reports.topics.losses.controls import PartAlone, Timed, parts_alone
from reports.topics.losses.losses import MUCH, Loss, at_most_gpus, losses
from suite.files.wording import counted
from suite.schema.record import Workload

NAMES: Final[dict[Workload, str]] = {
    "environment_step": "Environment steps",
    "rendering": "Rendering",
    "all_reduce": "All-reduce",
    "collection": "Rollouts, and TorchRL's collector alone",
}
IN_MS, IN_US = 1e3, 1e6
NUM_NAMED: Final = 3


def lost(version: Version) -> Html:
    """What loses most in how many curves, and a table for each set."""
    found = [(one, losses(one.campaign)) for one in version.scaling]
    if not any(those for _, those in found):
        return paragraph("No case on several GPUs says what its iterations go to beside one on fewer.")
    parts: list[Displayed] = [paragraph(_in_words([loss for _, those in found for loss in at_most_gpus(those)]))]
    for one, those in found:
        if those:
            parts += [heading(one.title)] if version.must_name_sets else []
            parts += _losses(those, label=f"What scaling loses {one.title}".strip())
    return together(parts)


def _in_words(found: Sequence[Loss]) -> str:
    """A curve counts where its interval, if it has one, leaves no doubt that something is lost."""
    much = [one for one in found if one.lost > MUCH and (one.lost_interval is None or one.lost_interval[0] > 0)]
    said = f"Over {percent(MUCH)} of ideal is lost at the most GPUs of {len(much)} of {counted(len(found), 'curve')}"
    causes = Counter(one.largest_part for one in much).most_common()
    named = ", ".join(f"{part} in {number}" for part, number in causes)
    return f"{said}; the largest part of it is {named}." if named else f"{said}."


def of_series(series: Sequence[Campaign]) -> Html:
    """What ``lost`` shows, of one series in every set; nothing where nothing is known."""
    name = series[0].rows[0].series
    found = [(one, losses(one)) for one in series]
    shown = [(one, those) for one, those in found if those]
    if not shown:
        return Html(markup="", text="")
    parts: list[Displayed] = [
        paragraph("What is lost against the fewest GPUs, by the part that takes longer than ideal scaling allows:")
    ]
    for one, those in shown:
        parts += [heading(one.title, depth=4)] if len(found) > 1 or one.is_contributed else []
        parts += _losses(those, label=f"What {name} loses {one.title}".strip())
    return together(parts)


def _losses(found: Sequence[Loss], *, label: str) -> list[Displayed]:
    """The table, and below it the largest parts with their intervals where rounds tell them from nothing."""
    sure = [said for loss in found if (said := _surely(loss))]
    return [_table(found, label=label), *([bullets(sure)] if sure else [])]


def _surely(loss: Loss) -> str | None:
    """None where nothing is lost for sure, or too few rounds ran to say."""
    if not loss.is_sure:
        return None
    lost = [part for part, (low, _) in loss.part_intervals.items() if low > 0]
    largest = sorted(lost, key=lambda part: -loss.parts[part])[:NUM_NAMED]
    named = (f"{part} {percent(loss.parts[part])} ({percent_interval(loss.part_intervals[part])})" for part in largest)
    return f"{loss.case_id}: {', '.join(named)}." if largest else None


def _table(found: Sequence[Loss], *, label: str) -> Html:
    shown = [part for part in PARTS.values() if any(part in loss.parts for loss in found)]
    return html_table(
        ["Case", "Lost", "Interval", *(part.capitalize() for part in shown)],
        (
            [
                loss.case_id,
                percent(loss.lost),
                percent_interval(loss.lost_interval),
                *(percent(loss.parts.get(part)) for part in shown),
            ]
            for loss in found
        ),
        label=label,
    )


def alone(version: Version) -> Html:
    """A table for each control: its times beside those of the same part in training."""
    found = parts_alone([one.campaign.results for one in version.scaling])
    if not found:
        return paragraph("No control ran on GPUs.")
    parts: list[Displayed] = []
    for part in found:
        parts += [heading(_title(part)), _times(part, version)]
    return together(parts)


def beside_training(version: Version, control: Campaign) -> Html:
    """Of one control what ``alone`` shows of all."""
    wanted = (control.rows[0].task, control.rows[0].series)
    found = [
        part
        for part in parts_alone([one.campaign.results for one in version.scaling])
        if any((each.case.task, each.case.series) == wanted for each in part.timed)
    ]
    if not found:
        return paragraph("It did not complete on GPUs, so there is nothing to hold against training.")
    return together(
        displayed for part in found for displayed in (heading(_title(part), depth=4), _times(part, version))
    )


def _title(part: PartAlone) -> str:
    size = "" if part.num_envs is None else f", {counted(part.num_envs, 'environment')} a rank"
    return f"{NAMES[part.workload]}: {part.task}, {part.stack}{size}"


def _runs(timed: Timed) -> str:
    if timed.case.workload == "collection_ray":
        return "alone, over Ray"
    return "alone" if timed.is_alone else "in training"


def _times(part: PartAlone, version: Version) -> Html:
    factor, unit = (
        (IN_US, "µs of all-reduces an optimiser step") if part.unit == "optimiser step" else (IN_MS, "ms a step")
    )
    return html_table(
        ["Case", "Runs", "Where", "GPUs", unit, "Times the fewest GPUs"],
        (
            [
                each.case.case_id,
                _runs(each),
                machine_cell(version.machine_names.get(each.where, each.where)),
                str(each.case.world_size),
                f"{factor * each.time_s:.3g}",
                ratio(each.times_fewest),
            ]
            for each in part.timed
        ),
        label=_title(part),
        text_headings=("Runs", "Where"),
    )
