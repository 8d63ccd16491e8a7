"""Results in the formats that other tools read.

``python -m reports.export.command RESULTS --format FORMAT [--out FILE]``

parquet  a folder with the tables of runs, iterations, checks and figures; ``reports.data.columns`` has their columns
csv      the same tables as CSV
github   github-action-benchmark, `customBiggerIsBetter`: frames per second of every configuration
bencher  Bencher Metric Format: frames per second and iteration time, with their intervals
reframe  a ReFrame test that runs the same configurations on another system and compares with these
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reports.analysis.environments import hardware
from reports.analysis.rows import CaseRow
from reports.export.reframe_test import render
from reports.figures.tables import content, tables
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.planned import MATRIX, planned_cases
from reports.sets.version import ResultSet, Version, read_version
from suite.errors import ReportError, UsageError
from suite.files.wording import counted
from suite.options.command_line import Parser, any_path, any_text, exit_code_of, results_path


def github_action_benchmark(version: Version) -> str:
    """A list, one entry a measured case. ``range`` is half of the interval, where there is one."""
    entries = [
        {
            "name": _name(one, row),
            "unit": "frames/s",
            "value": row.total_fps,
            **_range(row),
            "extra": f"{_where(one)}; {counted(row.rounds_completed, 'run')}; {_said(one, row)}{_whose(one)}",
        }
        for one in version.shown
        for row in one.campaign.rows
        if row.total_fps is not None
    ]
    return json.dumps(entries, indent=1) + "\n"


def bencher(version: Version) -> str:
    """Benchmark -> measure -> value with the bounds of its interval, where there is one."""
    metrics = {
        _name(one, row): _metrics(row)
        for one in version.shown
        for row in one.campaign.rows
        if row.total_fps is not None and row.iteration_time_s is not None
    }
    return json.dumps(metrics, indent=1) + "\n"


def reframe(version: Version, matrix: str = MATRIX) -> str:
    """A Python file for ReFrame.

    Raises ReportError for more than one set, since references are of one system, and for cases that ``matrix`` lacks,
    which the test could not run.
    """
    if len(version.shown) != 1:
        names = ", ".join(one.name for one in version.shown)
        raise ReportError(f"A ReFrame test has the references of one system, and there are {names}. Name one of them.")
    (one,) = version.shown
    rows = [row for row in one.campaign.rows if row.total_fps is not None]
    known = {case.case_id for device in {row.device for row in rows} for case in planned_cases(matrix, device=device)}
    unknown = [row.case_id for row in rows if row.case_id not in known]
    if unknown:
        raise ReportError(
            f"The matrix {matrix} has no case {unknown[0]}, so a ReFrame test could not run it"
            f" ({counted(len(unknown), 'such case')}). Name the matrix that was measured with --matrix."
        )
    return render(rows, where=_where(one) + _whose(one), matrix=matrix)


FORMATS: Final[Mapping[str, Callable[[Version], str]]] = {
    "github": github_action_benchmark,
    "bencher": bencher,
    "reframe": reframe,
}
TABLES: Final = ("csv", "parquet")


def write_tables(version: Version, suffix: str, folder: Path) -> None:
    """Write every table into the folder, which is made. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables(version).items():
        (folder / f"{name}.{suffix}").write_bytes(content(table, suffix))


def _name(one: ResultSet, row: CaseRow) -> str:
    return f"{one.name}: {row.case_id}" if one.name else row.case_id


def _whose(one: ResultSet) -> str:
    return f"; contributed by {one.contributor.name}" if one.contributor else ""


def _range(row: CaseRow) -> dict[str, str]:
    bounds = _fps_bounds(row)
    # Its reader skips a number of one digit.
    return {} if bounds is None else {"range": f"± {(bounds[1] - bounds[0]) / 2:.1f}"}


def _fps_bounds(row: CaseRow) -> tuple[float, float] | None:
    """Of the time's interval: the longer time is the lower throughput."""
    if row.total_fps is None or row.iteration_time_s is None or row.iteration_time_interval_s is None:
        return None
    frames = row.total_fps * row.iteration_time_s
    low_s, high_s = row.iteration_time_interval_s
    return frames / high_s, frames / low_s


def _metrics(row: CaseRow) -> dict[str, Any]:
    def measure(value: float | None, bounds: tuple[float, float] | None) -> dict[str, float | None]:
        return {"value": value} | ({} if bounds is None else {"lower_value": bounds[0], "upper_value": bounds[1]})

    return {
        "total-fps": measure(row.total_fps, _fps_bounds(row)),
        "iteration-time-s": measure(row.iteration_time_s, row.iteration_time_interval_s),
    }


def _said(one: ResultSet, row: CaseRow) -> str:
    """The efficiency of a set that has speeds; that of the fewest ranks that ran is 1, however many they are."""
    if not one.campaign.has_speeds:
        return "a speed that means nothing: on a CPU"
    return f"efficiency {_efficiency(row)}"


def _efficiency(row: CaseRow) -> str:
    if row.scaling_efficiency is None or row.baseline_world_size is None:
        return "unknown"
    return f"{row.scaling_efficiency:.3f} against {counted(row.baseline_world_size, 'rank')}"


def _where(one: ResultSet) -> str:
    largest = max(one.campaign.places, key=lambda place: len(place.environment.gpus))
    return hardware(largest.environment)


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="nox -s export --", description="Write results in a format that other tools read.")
    parser.add_argument(
        "results", type=results_path, metavar="RESULTS", help="a campaign's folder, a set, or a version"
    )
    parser.add_argument("--format", choices=(*TABLES, *FORMATS), required=True)
    parser.add_argument(
        "--matrix",
        type=any_text,
        metavar="M",
        help=f"that the configurations are of, with --format reframe (default: {MATRIX})",
    )
    parser.add_argument(
        "--out",
        type=any_path,
        metavar="FILE",
        help="default: print it; a folder for csv and parquet, which have several tables",
    )
    options = parser.read(arguments)
    if options.matrix is not None and options.format != "reframe":
        raise UsageError(
            f"--matrix {options.matrix}: only with --format reframe, got --format {options.format}. Leave it out."
        )
    if options.format in TABLES and options.out is None:
        raise UsageError(f"--format {options.format} writes several tables. Say where: --out FOLDER.")
    with told_when_unreadable(options.results):
        version = read_version(options.results, name="")
    if options.format in TABLES:
        with told_when_unwritable(options.out):
            write_tables(version, options.format, options.out)
        return 0
    is_reframe = options.format == "reframe"
    text = reframe(version, options.matrix or MATRIX) if is_reframe else FORMATS[options.format](version)
    if options.out is None:
        print(text, end="")
    else:
        with told_when_unwritable(options.out):
            options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
