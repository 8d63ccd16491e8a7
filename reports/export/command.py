"""Results in the formats that other tools read.

parquet  a folder with the tables of runs, iterations, checks and figures; ``reports.data.columns`` has their columns
csv      the same tables as CSV
github   github-action-benchmark, `customBiggerIsBetter`: frames per second of every configuration
bencher  Bencher Metric Format: frames per second and iteration time, with their intervals
reframe  a ReFrame test that runs the same configurations on another system and compares with these
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.export.reframe_test import render
from reports.figures.compare import Row
from reports.figures.lines import Figure, figure
from reports.figures.tables import content, runs_of, tables
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.machines import hardware
from reports.sets.planned import MATRIX, planned_cases
from reports.sets.version import ResultSet, Version, read_version
from suite.errors import ReportError, UsageError
from suite.files.wording import counted
from suite.options.command_line import Parser, any_path, any_text, results_path


@dataclass(frozen=True)
class Speed:
    """A measured configuration with the rows of its figures."""

    result_set: ResultSet
    row: Row
    frames_per_s: Figure
    iteration_s: Figure
    share_kept: Figure | None  # of the ideal speed over fewer GPUs

    @property
    def name(self) -> str:
        """Unique in the version."""
        name = str(self.row["configuration"])
        return f"{self.result_set.name}: {name}" if self.result_set.name else name

    @property
    def where(self) -> str:
        """The hardware, and who measured on it if not the project itself."""
        largest = self.result_set.campaign.largest_place
        contributor = self.result_set.contributor
        return hardware(largest.environment) + (f"; contributed by {contributor.name}" if contributor else "")


def speeds(version: Version) -> list[Speed]:
    """Return every configuration that a frame of a training was measured of, in the order of the sets."""
    sets = {own.name or "results": own for own in version.shown}
    speeds = []
    for row in runs_of(version).configurations:
        names = ("frames_per_s", "iteration_s", "share_kept")
        frames_per_s, iteration_s, share_kept = (figure(version, row, name) for name in names)
        if row["set"] in sets and frames_per_s and iteration_s:
            speeds.append(Speed(sets[row["set"]], row, frames_per_s, iteration_s, share_kept))
    return speeds


def github_action_benchmark(version: Version) -> str:
    """Return a list with an entry for each configuration. ``range`` is half of the interval, where there is one."""
    entries = [
        {
            "name": speed.name,
            "unit": "frames/s",
            "value": speed.frames_per_s["value"],
            **_range(speed.frames_per_s),
            "extra": f"{counted(speed.frames_per_s['runs'], 'run')}; {_in_words(speed)}; {speed.where}",
        }
        for speed in speeds(version)
    ]
    return json.dumps(entries, indent=1) + "\n"


def _range(figure: Figure) -> dict[str, str]:
    # Its reader skips a number of one digit.
    return {} if figure["low"] is None else {"range": f"± {(figure['high'] - figure['low']) / 2:.1f}"}


def _in_words(speed: Speed) -> str:
    if speed.row["device"] == "cpu":
        return "a speed that means nothing: on a CPU"
    kept = f", {speed.share_kept['value']:.3f} of the ideal speed" if speed.share_kept else ""
    return f"{counted(speed.row['gpus'], 'GPU')}{kept}"


def bencher(version: Version) -> str:
    """Return benchmark -> measure -> value with the bounds of its interval, where there is one."""
    metrics = {
        speed.name: {"total-fps": _measure(speed.frames_per_s), "iteration-time-s": _measure(speed.iteration_s)}
        for speed in speeds(version)
    }
    return json.dumps(metrics, indent=1) + "\n"


def _measure(figure: Figure) -> dict[str, float]:
    bounds = {} if figure["low"] is None else {"lower_value": figure["low"], "upper_value": figure["high"]}
    return {"value": figure["value"], **bounds}


def reframe(version: Version, matrix: str = MATRIX) -> str:
    """Return a Python file for ReFrame.

    Raises ReportError for more than one set, since references are of one system, and for configurations that ``matrix``
    lacks, which the test could not run.
    """
    if len(version.shown) != 1:
        names = ", ".join(own.name for own in version.shown)
        raise ReportError(f"A ReFrame test has the references of one system, and there are {names}. Name one of them.")
    measured = speeds(version)
    devices = {speed.row["device"] for speed in measured}
    known = {case.case_id for device in devices for case in planned_cases(matrix, device=device)}
    unknown = [name for speed in measured if (name := speed.row["configuration"]) not in known]
    if unknown:
        raise ReportError(
            f"The matrix {matrix} has no configuration {unknown[0]}, so a ReFrame test could not run it"
            f" ({counted(len(unknown), 'such configuration')}). Name the matrix that was measured with --matrix."
        )
    references = {
        speed.row["configuration"]: {
            "total_fps": round(speed.frames_per_s["value"]),
            "gpus": speed.row["gpus"] if speed.row["device"] == "cuda" else 0,
        }
        for speed in measured
        if speed.row["nodes"] == 1
    }
    return render(references, where=measured[0].where if measured else "no machine", matrix=matrix)


FORMATS: Final[Mapping[str, Callable[[Version], str]]] = {
    "github": github_action_benchmark,
    "bencher": bencher,
    "reframe": reframe,
}
TABLES: Final = ("csv", "parquet")


def main(arguments: Sequence[str]) -> int:
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
            options.out.mkdir(parents=True, exist_ok=True)
            for name, table in tables(version).items():
                (options.out / f"{name}.{options.format}").write_bytes(content(table, options.format))
        return 0
    is_reframe = options.format == "reframe"
    text = reframe(version, options.matrix or MATRIX) if is_reframe else FORMATS[options.format](version)
    if options.out is None:
        print(text, end="")
    else:
        with told_when_unwritable(options.out):
            options.out.write_text(text, encoding="utf-8")
    return 0
