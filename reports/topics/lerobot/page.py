"""LeRobot in Isaac Lab's environments: the answer, and tables of every set."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.display.charts.sweep import environments
from reports.display.html import (
    Displayed,
    Html,
    answer_of_page,
    count,
    estimated,
    heading,
    html_table,
    seconds,
    together,
)
from reports.display.per_set import failures_in_words, under_titles
from reports.display.series_tables import environments_text
from reports.sets.version import ResultSet, Version
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s


@dataclass(frozen=True, kw_only=True)
class Acting:
    """One case of a policy that acts; figures are None if no run completed, latencies if no call was timed too."""

    result: CaseResult
    fps: Estimate | None  # environment steps a second, with the choice of their actions
    latency_s: Estimate | None  # of one choice of the actions of all environments
    rare_latency_s: Estimate | None  # that 99 % of the calls keep to

    @property
    def case(self) -> Case:
        return self.result.case


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One case whose frames LeRobot wrote; figures are None if no run completed."""

    result: CaseResult
    fps: Estimate | None  # frames a second, simulated and written
    written_fps: Estimate | None  # frames a second while it writes
    bytes_per_frame: Estimate | None  # on disk

    @property
    def case(self) -> Case:
        return self.result.case


def acting(results: Sequence[CaseResult]) -> tuple[Acting, ...]:
    """Return every case of a policy that acts, with the fewest environments first."""
    return tuple(
        Acting(
            result=result,
            fps=_fps(result, round_time_s),
            latency_s=_known(result, lambda record: _median(record, "lerobot.latency_median_s", marked_iterations)),
            rare_latency_s=_known(result, lambda record: _median(record, "lerobot.latency_p99_s", marked_iterations)),
        )
        for result in _by_size(results)
        if result.case.workload == "policy_rollout"
    )


def recordings(results: Sequence[CaseResult]) -> tuple[Recording, ...]:
    """Return every case that LeRobot recorded, with the fewest environments first."""
    return tuple(
        Recording(
            result=result,
            fps=_fps(result, round_time_s),
            written_fps=_fps(result, lambda record: _median(record, "lerobot.written_time_s", counted_iterations)),
            bytes_per_frame=_known(
                result, lambda record: _median(record, "lerobot.bytes_per_frame", counted_iterations)
            ),
        )
        for result in _by_size(results)
        if result.case.workload == "dataset_recording"
    )


def _by_size(results: Sequence[CaseResult]) -> list[CaseResult]:
    return sorted(results, key=lambda result: result.case.num_envs)


def most_acting(found: Sequence[Acting]) -> Acting | None:
    """Return the case that makes the most frames; None if none completed."""
    return max((each for each in found if each.fps), key=lambda each: each.fps.value if each.fps else 0.0, default=None)


def most_written(found: Sequence[Recording]) -> Recording | None:
    """Return the case that writes the most frames; None if none completed."""
    known = (each for each in found if each.written_fps)
    return max(known, key=lambda each: each.written_fps.value if each.written_fps else 0.0, default=None)


def _fps(result: CaseResult, time_s: Callable[[RunRecord], float | None]) -> Estimate | None:
    known_s = _known(result, time_s)
    return known_s and known_s.mapped(lambda value: result.case.frames_per_iteration / value)


def _known(result: CaseResult, figure: Callable[[RunRecord], float | None]) -> Estimate | None:
    """Return the median over the completed runs that have the figure."""
    values = [value for record in result.completed if (value := figure(record)) is not None]
    return mean_of(values) if values else None


def _median(record: RunRecord, column: str, of: Callable[[RunRecord], Sequence[int]]) -> float | None:
    samples = record.ranks[0].samples[column]
    values = [value for iteration in of(record) if (value := samples[iteration]) is not None]
    return statistics.median(values) if values else None


ACTING: Final = ("Case", "Environments", "Frames/s", "Latency, ms", "99th percentile, ms", "Runs")
RECORDING: Final = ("Case", "Environments", "Frames/s", "Frames/s written", "Bytes a frame", "Runs")
IN_MS: Final = 1e3
FEWEST_DRAWN: Final = 3  # numbers of environments; the table says what two are


def has_lerobot(version: Version) -> bool:
    return any(map(_has_any, version.scaling))


def _has_any(one: ResultSet) -> bool:
    return bool(acting(one.campaign.results) or recordings(one.campaign.results))


def answer(version: Version) -> Html:
    """Say how fast the policy acts in the fewest and the most environments, and how fast data sets are written."""
    results = [result for one in version.scaling for result in one.campaign.results]
    said = [text for text in (_acts(acting(results)), _writes(recordings(results))) if text]
    return answer_of_page(" ".join(said) or "No run of LeRobot completed.")


def sets(version: Version) -> Html:
    """A chart with its claim as title, and tables, for every set in which LeRobot acted or recorded."""
    return under_titles(
        [one for one in version.scaling if _has_any(one)],
        lambda one: together([*_drawn(one.campaign), *_of(one.campaign, one.title)]),
        are_named=version.must_name_sets,
    )


def of_series(_: Version, parts: Sequence[Campaign]) -> Sequence[Html]:
    """Return a table for each set that has the series; none where it is not of LeRobot."""
    return [together(found) for part in parts if (found := _of(part, part.where))]


def _acts(found: Sequence[Acting]) -> str:
    most = most_acting(found)
    if most is None or most.fps is None:
        return ""
    quickest = min((each for each in found if each.fps), key=lambda each: each.case.num_envs)
    said = f"A policy of LeRobot makes {count(most.fps.value)} frames a second in {_environments(most)}."
    usual_s, rare_s = quickest.latency_s, quickest.rare_latency_s
    if usual_s is None or rare_s is None:
        return said
    kept = f"{_in_ms(usual_s.value)} ms, and 99 times of 100 in {_in_ms(rare_s.value)} ms or less"
    return f"{said} In {_environments(quickest)} it chooses actions in {kept}."


def _writes(found: Sequence[Recording]) -> str:
    most = most_written(found)
    if most is None or most.written_fps is None:
        return ""
    size = "" if most.bytes_per_frame is None else f", of {count(most.bytes_per_frame.value)} bytes each"
    return (
        f"Its data set writer keeps {count(most.written_fps.value)} frames a second from {_environments(most)}{size}."
    )


def _environments(each: Acting | Recording) -> str:
    return environments_text(each.case.num_envs)


def _of(campaign: Campaign, title: str) -> list[Displayed]:
    acted, recorded = acting(campaign.results), recordings(campaign.results)
    parts: list[Displayed] = []
    if acted:
        rows = [_row(each, estimated(each.latency_s, _in_ms), estimated(each.rare_latency_s, _in_ms)) for each in acted]
        parts.append(html_table(ACTING, rows, label=f"A policy of LeRobot {title}".strip()))
    if recorded:
        rows = [
            _row(each, estimated(each.written_fps, count), estimated(each.bytes_per_frame, count)) for each in recorded
        ]
        parts.append(html_table(RECORDING, rows, label=f"LeRobot's data set writer {title}".strip()))
    parts += failures_in_words(each.result for each in acted)
    parts += failures_in_words(each.result for each in recorded)
    return parts


def _drawn(campaign: Campaign) -> list[Displayed]:
    found = [each for each in acting(campaign.results) if each.fps]
    if len(found) < FEWEST_DRAWN or len({each.case.series for each in found}) > 1:
        return []
    few, many = (f"{count(each.fps.value)} in {_environments(each)}" for each in (found[0], found[-1]) if each.fps)
    return [
        heading(f"A policy makes {few} and {many}, in frames a second", depth=4),
        environments(campaign.series(found[0].case.series)),
    ]


def _row(each: Acting | Recording, *own: str) -> list[str]:
    runs = str(len(each.result.completed))
    return [each.case.case_id, str(each.case.num_envs), estimated(each.fps, count), *own, runs]


def _in_ms(time_s: float) -> str:
    return seconds(IN_MS * time_s)
