"""The files of figures that a version publishes, from its stored samples. ``verify`` computes each value again.

``python -m reports.site.figure_files [VERSION]`` writes them anew; without a name, those of the newest version.

figures.json        what was measured of each case, and its ratios to those it is compared with, see ``reports.sets``
page_figures.json   what the pages say besides, by page: ratios of stacks, of starts, of turns, of machines
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from reports.display.topic import Figures
from reports.sets import figures_file
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.version import Version, read_version, version_order
from reports.site.publish import older_folders, with_older
from reports.site.topics import topics
from reports.verification.samples.stored_version import PAGE_FIGURES
from suite.files.paths import ROOT
from suite.options.command_line import Parser, exit_code_of, results_path

RESULTS: Final = ROOT / "reports" / "results"


def page_figures(version: Version) -> Mapping[str, Mapping[str, Figures]]:
    """Return page -> what it is said of -> figures; a page without a figure of its own is left out."""
    found = {page: figures(version) for topic in topics() for page, figures in topic.figures.items()}
    return {page: said for page, said in sorted(found.items()) if said}


def texts(version: Version) -> Mapping[str, str]:
    """Return name -> text of every file of figures."""
    return {figures_file.FILE: figures_file.text(version), PAGE_FIGURES: _text(version)}


def write(folder: Path, *, beside: Path | None = None) -> list[Path]:
    """Write the files of the version in ``folder``, and return their paths.

    ``beside``: where the other versions are, if not around it. Raises ReportError, StoreError, OSError.
    """
    folders = [folder, *older_folders(folder, beside or folder.resolve().parent)]
    found = texts(with_older([read_version(path, name=path.name) for path in folders])[0])
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in found]


def _text(version: Version) -> str:
    """Return one line for each thing of which a page says something, so that a difference shows what changed.

    First comes what decides what the pages show: the roles of sets, in the order of the version; who measured those
    that are not the project's own; and the older versions, newest first.
    """
    head: dict[str, object] = {"roles": {one.name: one.role for one in version.sets}}
    if contributors := {one.name: one.contributor.name for one in version.sets if one.contributor}:
        head["contributors"] = contributors
    head["older"] = [one.name for one in version.older]
    shown = []
    for page, said in page_figures(version).items():
        lines = ",\n   ".join(f"{json.dumps(of)}: {json.dumps(figures)}" for of, figures in sorted(said.items()))
        shown.append(f"{json.dumps(page)}: {{\n   {lines}\n  }}")
    pages = ",\n  ".join(shown)
    heads = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
    return f'{{{heads},\n "pages": {{\n  {pages}\n }}\n}}\n'


def _newest() -> Path:
    versions = (path.parent for path in RESULTS.glob(f"*/{figures_file.FILE}"))
    return max(versions, key=lambda path: version_order(path.name))


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    description = f"Write {figures_file.FILE} and {PAGE_FIGURES} of a version."
    parser = Parser(prog="python -m reports.site.figure_files", description=description)
    parser.add_argument("version", type=results_path, nargs="?", metavar="VERSION")
    folder = parser.read(arguments).version or _newest()
    with told_when_unreadable(folder), told_when_unwritable(folder):
        print(*write(folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
