"""Build the report of one campaign: stored results in, a folder of HTML out."""

from collections.abc import Sequence
from pathlib import Path

from reports.sets.file_errors import told_when_unreadable
from reports.sets.version import read_version
from reports.site.book import build_sites
from suite import __version__
from suite.options.command_line import Parser, any_path, results_path


def build(results_dir: Path, out_dir: Path) -> Path:
    """Write the report of ``results_dir`` to ``out_dir``, replacing an earlier report there; return its index.html.

    Raises ReportError when there are no results, a folder cannot be read, a page fails or ``out_dir`` holds something
    else or cannot be written, and StoreError when a result cannot be read.
    """
    with told_when_unreadable(results_dir):
        read = read_version(results_dir, name=__version__)
    build_sites({out_dir: read})
    return out_dir / "index.html"


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="nox -s report --", description="Build the report of stored results.")
    parser.add_argument(
        "results_dir",
        type=results_path,
        metavar="RESULTS_DIR",
        help="folder that `nox -s bench` wrote, or a version below reports/results",
    )
    parser.add_argument(
        "--out",
        type=any_path,
        metavar="DIR",
        help="folder to write, new or an earlier report (default: RESULTS_DIR/report)",
    )
    options = parser.read(arguments)
    out_dir = (options.out or options.results_dir / "report").resolve()  # a link stays, and what it names is written
    print(build(options.results_dir, out_dir))
    return 0
