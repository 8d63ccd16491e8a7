"""The findings of README.md, from results in git: ``python -m reports.readme`` prints what is between its marks."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from reports.analysis import CaseRow, case_rows
from reports.divisions import Gain, gains
from reports.places import Place, places
from reports.scaling_groups import ScalingGroup, ScalingPoint, point_efficiency, point_speedup, scaling_groups
from reports.verdicts import verdict
from suite.errors import ReportError
from suite.options.command_line import exit_code_of
from suite.records.store import load_results
from suite.schema.record import CaseResult
from suite.statistics.aa_noise import SUFFIX, noise_budget, twin_pairs
from suite.statistics.intervals import Estimate
from suite.statistics.reduce import steady_part

BEGIN: Final = "<!-- begin: made by `python -m reports.readme` -->"
SETTLED: Final = "Settled runs no longer got faster or slower; none is left out."
END: Final = "<!-- end -->"
FOLDER: Final = "reports/results/2026.11"  # as README.md links to it
ROOT: Final = Path(__file__).resolve().parent.parent
VERSIONS: Final = {
    "Isaac Lab": "isaaclab", "Newton": "newton", "torch": "torch", "rl-games": "rl-games", "rsl-rl-lib": "rsl-rl-lib",
    "NCCL": "nccl",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Source:
    """A set of results with the place it ran in."""

    name: str
    results: Sequence[CaseResult]
    repeats: Sequence[CaseResult]  # of the baselines, to measure noise

    @property
    def noise(self) -> float:
        """By how much medians of the same case lie apart here."""
        return _known(noise_budget(twin_pairs((*self.results, *self.repeats))))

    @property
    def place(self) -> Place:
        return max(places(self.results), key=lambda place: len(place.environment.gpus))

    @property
    def where(self) -> str:
        """A link to the set that says hardware and date, such as ``4 x H200, 64 vCPU, 22 Nov 2026``."""
        environment = self.place.environment
        counts = Counter(gpu.name.removeprefix("NVIDIA ") for gpu in environment.gpus)
        gpus = ", ".join(f"{count} x {name}" for name, count in counts.items())
        day = datetime.fromisoformat(self.place.first_started_utc or "")
        return f"[{gpus}, {environment.num_cpus} vCPU, {day.day} {day:%b %Y}]({FOLDER}/{self.name})"

    def most_gpus(self, series: str) -> CaseRow:
        """The completed case of a series with the most GPUs of one node."""
        rows = [row for row in case_rows(self.results) if row.series == series and row.nnodes == 1 and row.total_fps]
        return max(rows, key=lambda row: row.world_size)

    def group(self, row: CaseRow) -> ScalingGroup:
        """The curve that a case is a point of, with the baseline's repeat."""
        groups = scaling_groups([*self.results, *self.repeats])
        return next(group for group in groups if row.case_id in {point.case_id for point in group.points})

    def settled(self, *case_ids: str) -> str:
        """How many runs of some cases had settled, such as ``3 of 6 runs settled``."""
        records = [record for one in self.results if one.case.case_id in case_ids for record in one.completed]
        return f"{sum(steady_part(record).flag is None for record in records)} of {len(records)} runs settled"


def read(name: str) -> Source:
    folder = ROOT / FOLDER / name
    return Source(name=name, results=load_results(folder), repeats=load_results(folder / "a_a"))


def findings() -> str:
    """Four findings with their ranges and places, and the versions that all of them share.

    Raises:
        ReportError: a figure is missing, or the sets differ in a version or in their number of runs.
    """
    sources = full, rsl_rl, shadow, tuned = [
        read(name) for name in ("h200-x4-full", "h200-x4-rsl", "h200-x2-shadow", "h200-open-rsl")
    ]
    ant, hand = full.most_gpus("ant-weak"), shadow.most_gpus("shadow-horizontal")
    cartpole, slower = full.most_gpus("cartpole-strong"), rsl_rl.most_gpus("cartpole-strong")
    gain = widest(tuned)
    runs = {row.rounds_completed for row in (ant, cartpole, slower, hand)} | {gain.rounds, gain.closed_rounds}
    return f"""\
- **Ant, {ant.num_envs:,} environments per GPU** ({ant.rl_library}): {_known(ant.total_fps):,.0f} training frames/s on
  {ant.world_size} GPUs, {_efficiency(ant, full)}.
- **Cartpole, {cartpole.num_envs_global:,} environments in total** ({cartpole.rl_library}): on
  {cartpole.world_size} GPUs {_efficiency(cartpole, full)}.
  With {slower.rl_library}, {slower.world_size} GPUs are neither surely faster than one nor surely slower:
  {_speedup(slower, rsl_rl)}.
- **Shadow Hand with a camera, {hand.num_envs:,} environments per GPU** ({hand.rl_library}): on
  {hand.world_size} GPUs {_efficiency(hand, shadow)}.
- **Cartpole, tuned** ({gain.case.rl_library}, one GPU): {gain.case.num_envs:,} environments in place of
  {gain.closed.num_envs:,} make {_gain(gain, tuned)}.
  More frames are not more learning: after {gain.case.iterations} iterations they had not reached the reward of the
  settings as shipped.

Each figure is a median of {_one(runs)} runs. {SETTLED} {_versions(sources)}."""


def widest(tuned: Source) -> Gain:
    """The tuned case with the most environments beside its case as shipped."""
    return max(gains(tuned.results, tuned.repeats), key=lambda gain: gain.case.num_envs)


def _efficiency(row: CaseRow, source: Source) -> str:
    value, (low, high) = _known(row.scaling_efficiency), _known(row.scaling_efficiency_interval)
    group = source.group(row)
    twin = group.from_twin
    repeated = None if twin is None else point_efficiency(twin, _point(group, row)).value
    said = [
        f"{100 * low:.1f} to {100 * high:.1f}",
        *([] if repeated is None else [f"{100 * repeated:.1f} against the baseline's repeat"]),
        f"verdict {verdict(group).word}",
        source.settled(group.baseline.case_id, row.case_id),
    ]
    return f"an efficiency of {100 * value:.1f} % ({'; '.join(said)};{_noise_and_place(source)})"


def _speedup(row: CaseRow, source: Source) -> str:
    group = source.group(row)
    repeated = point_speedup(_known(group.from_twin), _point(group, row)).value
    found = Estimate(value=_known(row.speedup), interval=row.speedup_interval)
    settled = source.settled(group.baseline.case_id, row.case_id)
    return _times(found, repeated, f"verdict {verdict(group).word}; {settled}", source)


def _gain(gain: Gain, source: Source) -> str:
    (repeated,) = (row.total_fps for row in case_rows(source.repeats) if row.case_id == gain.closed.case_id + SUFFIX)
    settled = source.settled(gain.case.case_id, gain.closed.case_id)
    return _times(_known(gain.gain), _known(gain.fps) / _known(repeated), f"{gain.speed}; {settled}", source)


def _times(found: Estimate, repeated: float, judged: str, source: Source) -> str:
    low, high = _known(found.interval)
    said = f"{low:.2f} to {high:.2f}; {repeated:.2f} against the baseline's repeat; {judged}"
    return f"{found.value:.2f} times the frames/s ({said};{_noise_and_place(source)})"


def _point(group: ScalingGroup, row: CaseRow) -> ScalingPoint:
    return next(point for point in group.points if point.case_id == row.case_id)


def _noise_and_place(source: Source) -> str:
    return f" noise {100 * source.noise:.1f} %;\n  {source.where}"


def _versions(sources: Sequence[Source]) -> str:
    named = [
        f"{spoken} {_one({source.place.versions[name] for source in sources})}" for spoken, name in VERSIONS.items()
    ]
    driver = _one({source.place.environment.driver_version for source in sources})
    return f"Versions: {', '.join(named)}, driver {driver}"


def _one[T](values: set[T]) -> T:
    if len(values) != 1:
        raise ReportError(f"The sets behind README.md's findings differ: {sorted(map(str, values))}. Say so there.")
    return values.pop()


def _known[T](value: T | None) -> T:
    if value is None:
        raise ReportError("A finding of README.md has no figure or no interval. Choose another set or case.")
    return value


def _run() -> int:
    print(BEGIN, findings(), END, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(_run))
