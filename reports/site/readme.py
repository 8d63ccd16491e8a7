"""Print what README.md has from results: ``python -m reports.site.readme``.

The findings come from ``figures.json``, what ran where from the stored records of all versions.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reports.analysis.curves import task_name
from reports.analysis.divisions import Gain, gains
from reports.analysis.environments import Place, places, plain_name
from reports.analysis.time_to_reward import CONVERGED_SHARE
from reports.display.series_tables import ranks_text
from reports.figures.tables import read_figures
from reports.site.publish import read_versions
from reports.site.topics import topics
from suite.errors import ReportError
from suite.files.paths import ROOT
from suite.files.wording import counted, joined
from suite.options.command_line import exit_code_of
from suite.records.store import load_results
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate
from suite.statistics.speed import side_of

BEGIN: Final = "<!-- begin: made by `python -m reports.site.readme` -->"
BEGIN_WHERE: Final = "<!-- begin: what ran where, made by `python -m reports.site.readme` -->"
END: Final = "<!-- end -->"
FOLDER: Final = "reports/results"  # as README.md links to it
MARKS: Final = (0.6, 0.7, 0.8, 0.95, 0.97)  # of the rise of a reward, beside the one in use
VERSIONS: Final = {
    "Isaac Lab": "isaaclab", "Newton": "newton", "torch": "torch", "rl-games": "rl-games", "rsl-rl-lib": "rsl-rl-lib",
    "NCCL": "nccl",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Source:
    """A set of results with the place it ran in, and its published figures by case id."""

    name: str  # version and folder, such as 2026.11/h200-x4
    results: Sequence[CaseResult]
    figures: Mapping[str, Mapping[str, Any]]  # rows of the version by id

    @property
    def place(self) -> Place:
        return max(places(self.results), key=lambda place: len(place.environment.gpus))

    @property
    def where(self) -> str:
        """A link to the set that says hardware and date, such as ``4 x H200, 64 vCPU, 22 Nov 2026``."""
        return f"[{plain_name(self.place)}]({FOLDER}/{self.name})"

    def most_gpus(self, series: str) -> Case:
        """The completed case of a series with the most GPUs of one node."""
        cases = [one.case for one in self.results if one.completed]
        return max(
            (case for case in cases if case.series == series and case.nnodes == 1), key=lambda case: case.world_size
        )

    def of(self, case: Case, name: str) -> Mapping[str, Any]:
        """A published figure, with its interval. Raises ReportError if it is not published, or has no interval."""
        row = self.figures.get(f"{self.name.partition('/')[2]}/{case.case_id}/{name}")
        if row is None or row["low"] is None:
            raise ReportError("A finding of README.md has no figure or no interval. Choose another set or case.")
        return row

    def runs(self, *cases: Case) -> str:
        """How many runs some cases had, such as ``12 runs``."""
        return counted(sum(self.of(case, "iteration_s")["runs"] for case in cases), "run")


def read(name: str) -> Source:
    """Read a set by its version and folder, such as ``2026.11/h200-x4``."""
    version = name.partition("/")[0]
    results = load_results(ROOT / FOLDER / name)
    return Source(name=name, results=results, figures=read_figures(ROOT / FOLDER / version))


def findings() -> str:
    """Four findings with their ranges and places, and the versions that all of them share.

    Raises:
        ReportError: a figure is missing, or the sets differ in a version.
    """
    sources = newest, full, rsl_rl, shadow, open_division = [
        read(name)
        for name in (
            "2026.12/h200-x2", "2026.12/h200-x4", "2026.11/h200-x4-rsl", "2026.12/h100-x2-shadow",
            "2026.12/h100-tuned-2",
        )
    ]  # fmt: skip
    ant, ants = newest.most_gpus("ant-weak"), full.most_gpus("ant-weak")
    cartpole, cartpoles = newest.most_gpus("cartpole-strong"), full.most_gpus("cartpole-strong")
    hand, slower = shadow.most_gpus("shadow-horizontal"), rsl_rl.most_gpus("cartpole-strong")
    return f"""\
- **Ant, {ant.num_envs:,} environments per GPU** ({ant.rl_library}): on \
{ant.world_size} GPUs {_efficiency(ant, newest)};
  on {ants.world_size} GPUs {_efficiency(ants, full)}.
- **Cartpole, {cartpole.num_envs_global:,} environments in total** ({cartpole.rl_library}): on \
{cartpole.world_size} GPUs {_efficiency(cartpole, newest)};
  on {cartpoles.world_size} GPUs {_efficiency(cartpoles, full)}.
  With {slower.rl_library}, {slower.world_size} GPUs {_compared_with_one(slower, rsl_rl)}.
- **Shadow Hand with a camera, {hand.num_envs:,} environments per GPU** ({hand.rl_library}): on \
{hand.world_size} GPUs {_efficiency(hand, shadow)}.
{tuned(open_division)}

Each figure compares means over runs in fresh processes. {_versions(sources)}."""


def what_ran_where() -> str:
    """Return what ran where, which the topic of that gives, from every version."""
    version = read_versions(ROOT / FOLDER)[0]
    return "\n\n".join(topic.readme(version) for topic in topics() if topic.readme)


def tuned(source: Source) -> str:
    """Frames and time to a reward of every tuned case of a set with several seeds."""
    found = gains(source.results)
    unsure = all(source.of(gain.case, "sooner")["status"] == "within noise" for gain in found)
    claim = "more frames do not surely bring a reward sooner" if unsure else "frames, and the time to a reward"
    seeds = counted(min(min(gain.seeds) for gain in found), "seed")
    shared = _one({f"{gain.case.rl_library}, {ranks_text(gain.case)}" for gain in found})
    mark = f"at {100 * CONVERGED_SHARE:.0f} % of its rise"
    lines = [f"- **Tuned settings** ({shared}, {seeds}): {claim}, {mark}. {_at_other_marks(source)}"]
    return "\n".join([*lines, *(f"  {_gain(gain, source)}" for gain in found)])


def _at_other_marks(source: Source) -> str:
    """Which reward surely comes sooner or later if another part of its rise is asked for; in words, from samples."""
    found: dict[str, list[str]] = {"sooner": [], "later": []}
    for mark in MARKS:
        for gain in gains(source.results, mark=mark):
            low, high = (gain.sooner and gain.sooner.interval) or (0.0, math.inf)
            if low > 1 or high < 1:
                found["sooner" if low > 1 else "later"].append(f"{task_name(gain.case.task)} at {100 * mark:.0f} %")
    said = "; ".join(f"surely {word}: {joined(names)}" for word, names in found.items() if names)
    marks = joined([f"{100 * mark:.0f}" for mark in MARKS])
    return f"It depends on that mark. At {marks} % the reward is {said or 'not surely sooner'}."


def _efficiency(case: Case, source: Source) -> str:
    kept = source.of(case, "share_kept")
    said = f"{100 * kept['low']:.1f} to {100 * kept['high']:.1f}; {_judged(kept)}"
    return f"an efficiency of {100 * kept['value']:.1f} % ({said}; {source.where})"


def _judged(kept: Mapping[str, Any]) -> str:
    side = side_of(Estimate(value=kept["value"], interval=(kept["low"], kept["high"])))
    return f"verdict {side}; {counted(kept['runs'], 'run')}"


def _compared_with_one(case: Case, source: Source) -> str:
    ratio = source.of(case, "over_gpus")
    word = "may be slower or faster"
    if ratio["status"] == "clear":
        word = "are slower than one" if ratio["value"] < 1 else "are faster than one"
    return f"{word}:\n  {_times(case, 'over_gpus', source.runs(case), source)}"


def _gain(gain: Gain, source: Source) -> str:
    """Raises ReportError if not every run had the reward as shipped."""
    sooner = source.of(gain.case, "sooner")
    frames = _times(gain.case, "over_is_tuned", f"{gain.speed}; {source.runs(gain.case, gain.closed)}", source)
    return (
        f"{task_name(gain.case.task)} with {gain.case.num_envs:,} environments in place of {gain.closed.num_envs:,}:"
        f" the reward as shipped comes {sooner['value']:.2f} times as soon ({sooner['low']:.2f} to"
        f" {sooner['high']:.2f}), at {frames}."
    )


def _times(case: Case, name: str, judged: str, source: Source) -> str:
    ratio = source.of(case, name)
    said = f"{ratio['low']:.2f} to {ratio['high']:.2f}; {judged}"
    return f"{ratio['value']:.2f} times the frames/s ({said}; {source.where})"


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


def _run() -> int:
    print(BEGIN, findings(), END, sep="\n")
    print("", BEGIN_WHERE, what_ran_where(), END, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(_run))
