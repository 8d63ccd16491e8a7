"""*What changed since the last version?*: speed-ups measured again on the same GPUs, and times case by case."""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

from reports.verification import formulas
from reports.verification.figures import estimates
from reports.verification.figures.rows import of_pair
from reports.verification.figures.same_work import work_of
from reports.verification.figures.series import Line, gpu_of, lines_of
from reports.verification.finding import Json
from reports.verification.pages.history import case_by_case
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

TOO_FEW: Final = f"of fewer than {formulas.MIN_PROCESSES} runs"
WORDS: Final = {1: "higher", -1: "lower", 0: "unchanged", None: "open"}


class Speedup(NamedTuple):
    """That of a number of GPUs over one, in one version."""

    version: str
    of_set: StoredSet
    line: Line
    point: StoredCase

    @property
    def place(self) -> str:
        return f"{self.of_set.folder.name}: {self.point.case_id}"

    @property
    def work(self) -> Hashable:
        """Return what is equal in two speed-ups of one configuration."""
        return gpu_of(self.line), self.line.mode, work_of(self.point.case)


def figures(version: StoredVersion) -> dict[str, Json]:
    if not (version.older and version.with_speeds):
        return {}
    before = version.older[0]
    found = [(each.work, each) for one in (version, *version.older) for each in _speedups(one)]
    pairs = [
        (old, new)
        for work, new in found
        for old_work, old in found
        if (new.version, old.version, work) == (version.name, before.name, old_work)
    ]
    changes = {f"{new.place} since {before.name}, {old.place}": _change(old, new) for old, new in pairs}
    several = Counter(work for work, _ in {(work, each.version) for work, each in found})
    ratios = [new.point.frames_per_s / old.point.frames_per_s for old, new in pairs]
    everything = {
        "configurations": len(several),
        "configurations_in_several_versions": sum(number > 1 for number in several.values()),
        "configurations_in_one_version": sum(number == 1 for number in several.values()),
        "configurations_compared": len({new.work for _, new in pairs}),
        "comparisons": len(changes),
        "verdicts": dict(Counter(change["verdict"] for change in changes.values())),
        "frames_ratio": [min(ratios), max(ratios)] if ratios else None,
    }
    runs = {f"runs of {one.name}": _runs(one) for one in (version, before)}
    return {"all": everything, **changes, **runs, **case_by_case.figures(before, version)}


def _runs(version: StoredVersion) -> Json:
    """Count the runs, and the states of labscale's code: a commit, with local changes or without."""
    completed = [stored.completed for one in version.with_speeds for stored in one.of_report if stored.completed]
    records = [record for those in completed for record in those]
    code = {(made["git_commit"][:12], bool(made["git_dirty"])) for made in map(_machine, records) if made["git_commit"]}
    numbers = [len(those) for those in completed]
    return {
        "runs": len(records),
        "in_turns": sum(record.get("turns") is not None for record in records),
        "runs_of_a_case": [min(numbers), max(numbers)] if numbers else [],
        "commits": len(code),
    }


def _machine(record: Json) -> Json:
    return {"git_commit": None, "git_dirty": None, **record["environment"]}


def _speedups(version: StoredVersion) -> Iterator[Speedup]:
    for one in version.with_speeds:
        for line in lines_of(one):
            for point in line.points[1:]:
                yield Speedup(version.name, one, line, point)


def _change(old: Speedup, new: Speedup) -> Json:
    """Return the speed-up now over that before, minus 1, and the word for it beside the noise of both campaigns."""
    cases = [case for each in (new, old) for case in (each.line.points[0], each.point)]
    ratio, span = estimates.estimate(
        [case.published_s.values() for case in cases],
        lambda times_s: (times_s[0] / times_s[1]) / (times_s[2] / times_s[3]),
        is_positive=True,
    )
    change = ratio - 1, span and (span[0] - 1, span[1] - 1)
    sign = case_by_case.direction(change, case_by_case.margin([old.of_set, new.of_set]))
    verdict = WORDS[sign] if span else TOO_FEW
    return {**of_pair("speedup_change", change), "verdict": verdict}
