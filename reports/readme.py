"""The tables of measured figures in README.md, made from results in git: ``python -m reports.readme RESULTS...``."""

import sys
from collections.abc import Sequence
from pathlib import Path

from reports.analysis import CaseRow, case_rows
from reports.places import hardware, places
from suite.errors import ReportError
from suite.options.command_line import exit_code_of
from suite.records.store import load_results
from suite.records.worked import has_speeds
from suite.schema.record import CaseResult

BEGIN = "<!-- begin: made by `python -m reports.readme` -->"
END = "<!-- end -->"


def results_table(results: Sequence[CaseResult]) -> str:
    """One row per series and library: median frames per second and efficiency at each number of GPUs of one node.

    Raises:
        ReportError: nothing can be said of their speed.
    """
    if not has_speeds(results):
        raise ReportError("These results ran on a CPU, or none of their rounds settled: their speeds mean nothing.")
    rows = [row for row in case_rows(results) if row.nnodes == 1]
    sizes = sorted({row.world_size for row in rows})
    header = "| series | " + " | ".join(f"{size} GPU{'s' if size > 1 else ''}" for size in sizes) + " |"
    lines = [header, "| --- |" + " ---: |" * len(sizes)]
    for series, library in dict.fromkeys((row.series, row.rl_library) for row in rows):
        own = [row for row in rows if (row.series, row.rl_library) == (series, library)]
        cells = [_cell([row for row in own if row.world_size == size]) for size in sizes]
        lines.append(f"| {series}, {library} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", _identity(results)])


def _cell(rows: Sequence[CaseRow]) -> str:
    if len(rows) != 1 or rows[0].total_fps is None:
        return "-"
    (row,) = rows
    efficiency = "-" if row.scaling_efficiency is None else f"{row.scaling_efficiency:.0%}"
    rounds = f"{row.rounds_completed} round{'s' if row.rounds_completed > 1 else ''}"
    return f"{row.total_fps:,.0f} ({efficiency}, {rounds})"


def _identity(results: Sequence[CaseResult]) -> str:
    place = max(places(results), key=lambda place: len(place.environment.gpus))
    names = ("isaaclab", "torch", "newton", "rl-games", "rsl-rl-lib", "nccl")
    versions = ", ".join(f"{name} {place.versions[name]}" for name in names if name in place.versions)
    environment = place.environment
    date = (place.first_started_utc or "at an unknown date")[:10]
    return (
        f"Frames per second of all ranks (scaling efficiency, rounds). {hardware(environment)}, "
        f"{environment.host_label}; driver {environment.driver_version}, {versions}; "
        f"measured {date} at commit {(environment.git_commit or 'unknown')[:7]}."
    )


def main(argv: Sequence[str]) -> int:
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str]) -> int:
    print(BEGIN, *(f"{results_table(load_results(Path(folder)))}\n" for folder in argv[1:]), END, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
