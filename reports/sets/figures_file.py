"""``figures.json`` of a version: every figure of its configurations that is published. README.md is made from it.

``python -m reports.sets.figures_file VERSION`` writes it anew. Pages offer the same file for download, and ``verify``
computes each of its values again, with formulas of its own.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reports.analysis.curves import comparison_key
from reports.analysis.divisions import Gain, gains
from reports.analysis.rows import CaseRow
from reports.analysis.scaling.scaling_groups import scaling_groups
from reports.analysis.scaling.verdicts import verdict
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.measured import measured_of_cases
from reports.sets.version import ResultSet, Version, read_version
from suite.files.input_file import read_input
from suite.options.command_line import Parser, exit_code_of, results_path
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate, Interval

FILE: Final = "figures.json"


def figures(version: Version) -> dict[str, Any]:
    """Return the content of the file: ``sets``, each with a row for every configuration by its id."""
    return {"sets": {one.name or "results": _of_set(one) for one in version.sets}}


def text(version: Version) -> str:
    """Return the file, one line a configuration, so that a difference shows which one changed."""
    sets = []
    for name, one in figures(version)["sets"].items():
        rows = ",\n   ".join(
            f"{json.dumps(case_id)}: {json.dumps(row)}" for case_id, row in one["configurations"].items()
        )
        sets.append(f'{json.dumps(name)}: {{\n  "configurations": {{\n   {rows}\n  }}\n }}')
    return '{"sets": {\n ' + ",\n ".join(sets) + "\n}}\n"


def write(folder: Path) -> Path:
    """Write the file of the version in ``folder``, and return its path. Raises ReportError, StoreError, OSError."""
    path = folder / FILE
    path.write_text(text(read_version(folder, name=folder.name)), encoding="utf-8")
    return path


def read_figures(folder: Path) -> dict[str, Any]:
    """Return ``sets`` of the stored file."""
    stored: dict[str, Any] = json.loads(read_input(folder / FILE))["sets"]
    return stored


def _of_set(one: ResultSet) -> dict[str, Any]:
    campaign = one.campaign
    results = {result.case.case_id: result for result in campaign.results}
    found = {gain.case.case_id: gain for gain in gains(campaign.results, campaign.twins)}
    verdicts = {
        group.points[-1].case_id: verdict(group).word
        for group in scaling_groups(campaign.results, campaign.model)
        if campaign.has_speeds and len(group.points) > 1
    }
    measured = measured_of_cases(campaign)
    rows = {
        row.case_id: {
            **_figure(row),
            **_scaling(row, results, is_shown=campaign.has_speeds),
            **_gain(found.get(row.case_id)),
            "verdict": verdicts.get(row.case_id),
            "measured": measured[row.case_id],
        }
        for row in campaign.rows
    }
    return {"configurations": dict(sorted(rows.items()))}


def _figure(row: CaseRow) -> dict[str, Any]:
    return {
        "runs": row.rounds_completed,
        "seconds_per_iteration": row.iteration_time_s,
        "interval_s": _bounds(row.iteration_time_interval_s),
        "frames_per_s": row.total_fps,
    }


def _baseline(result: CaseResult, results: Sequence[CaseResult]) -> str:
    """Return the id of the case with the fewest ranks of the same curve, measured or not."""
    key = comparison_key(result.case)
    cases = [other.case for other in results if comparison_key(other.case) == key]
    return min(cases, key=lambda case: (case.world_size, case.nnodes, case.case_id)).case_id


def _scaling(row: CaseRow, results: Mapping[str, CaseResult], *, is_shown: bool) -> dict[str, Any]:
    baseline = _baseline(results[row.case_id], [*results.values()])
    is_known = is_shown and row.speedup is not None
    return {
        "baseline": baseline if is_known else None,
        "speedup": row.speedup if is_known else None,
        "speedup_interval": _bounds(row.speedup_interval) if is_known else None,
        "efficiency": row.scaling_efficiency if is_known else None,
        "efficiency_interval": _bounds(row.scaling_efficiency_interval) if is_known else None,
    }


def _gain(gain: Gain | None) -> dict[str, Any]:
    estimate: Estimate | None = gain.gain if gain else None
    sooner = gain.sooner if gain and min(gain.seeds) > 1 else None  # what one seed learns is no published figure
    return {
        "as_shipped": gain.closed.case_id if gain and estimate else None,
        "gain": estimate.value if estimate else None,
        "gain_interval": _bounds(estimate.interval) if estimate else None,
        "sooner": sooner.value if sooner else None,
        "sooner_interval": _bounds(sooner.interval) if sooner else None,
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="python -m reports.sets.figures_file", description=f"Write {FILE} of a version.")
    parser.add_argument("version", type=results_path, metavar="VERSION")
    folder = parser.read(arguments).version
    with told_when_unreadable(folder), told_when_unwritable(folder):
        print(write(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
