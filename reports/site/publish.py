"""Assemble the public site: every version of the results in git, rebuilt, and one switcher over all of them.

``OUT/<version>/`` is a version's stable address, ``OUT/latest/`` a copy of the newest, ``OUT/index.html`` leads there.
A version is not built again when nothing that it is made of has changed. All links are relative, so the site works
under any address and from a disk.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.manifest import MANIFEST
from reports.sets.version import Version, read_version, version_order
from reports.site import guide
from reports.site.book import Sibling, build_sites
from reports.site.contents import page_files
from reports.site.replacing import LIST, STAMP, check_replaceable, replace_folder
from suite.errors import ReportError
from suite.files.paths import ROOT
from suite.options.command_line import Parser, any_path, results_path

RESULTS: Final = ROOT / "reports" / "results"
LATEST: Final = "latest"
INCOMING: Final = "incoming"  # where the workflow that measures proposes results
VERSIONS_FILE: Final = "versions.json"

_ENTRANCE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url=latest/index.html">
<title>labscale</title>
<link rel="icon" href="data:,">
</head>
<body>
<p><a href="latest/index.html">To the latest report</a></p>
</body>
</html>
"""


def publish(results_dir: Path, out_dir: Path) -> tuple[str, ...]:
    """Write the site of every version below ``results_dir`` to ``out_dir``; return the versions built, newest first.

    Versions that are there and unchanged are kept, those that no longer have results are removed. Raises ReportError
    when there is no version, a page fails, or ``out_dir`` holds something else or cannot be written.
    """
    names = version_names(results_dir)
    _check_replaceable(out_dir, names)
    hashes = {name: _sha256_of(_files(results_dir / name)) for name in names} | {"": _sha256_of(_common())}
    versions = read_versions(results_dir)
    siblings = tuple(Sibling(name=version.name, pages=page_files(version)) for version in versions)
    with told_when_unwritable(out_dir):
        return _write_site(versions, siblings, out_dir, hashes)


def read_versions(results_dir: Path) -> list[Version]:
    """Read every version below ``results_dir``, newest first, each with its older ones. Raises ReportError for none."""
    versions: list[Version] = []
    for name in reversed(version_names(results_dir)):
        with told_when_unreadable(results_dir / name):
            versions.insert(0, read_version(results_dir / name, name=name, older=tuple(versions)))
    return versions


def _write_site(
    versions: Sequence[Version], siblings: Sequence[Sibling], out_dir: Path, hashes: Mapping[str, str]
) -> tuple[str, ...]:
    """``hashes``: of what each version is made of, by its name, and of what all are made of, by an empty one."""
    out_dir.mkdir(parents=True, exist_ok=True)
    names = [version.name for version in versions]
    parts = {  # everything that a version's pages are made of
        own.name: [*(hashes[other.name] for other in (own, *own.older)), hashes[""], repr(siblings)] for own in versions
    }
    stamps = {name: hashlib.sha256("\n".join(own).encode()).hexdigest() for name, own in parts.items()}
    there = {path.parents[1].name: path.read_text(encoding="utf-8") for path in out_dir.glob(f"*/{STAMP}")}
    changed = [version for version in versions if there.get(version.name) != stamps[version.name]]
    build_sites({out_dir / version.name: version for version in changed}, siblings=siblings)
    built = [version.name for version in changed]
    for name in built:
        (out_dir / name / STAMP).write_text(stamps[name], encoding="utf-8")
    for folder in _reports_in(out_dir):
        if folder.name not in (*names, LATEST):
            shutil.rmtree(folder)
    replace_folder(out_dir / LATEST, [out_dir / names[0]])
    (out_dir / "index.html").write_text(_ENTRANCE, encoding="utf-8")
    (out_dir / ".nojekyll").write_text("", encoding="utf-8")  # GitHub Pages would leave out what begins with _
    known = [{"name": sibling.name, "pages": sibling.pages} for sibling in siblings]
    (out_dir / VERSIONS_FILE).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return tuple(built)


def version_names(results_dir: Path) -> list[str]:
    """Newest first: numbers in a name count as numbers, so 2026.9 is before 2026.11. Raises ReportError for none."""
    with told_when_unreadable(results_dir):
        names = [path.name for path in results_dir.iterdir() if path.is_dir()] if results_dir.is_dir() else []
    if (results_dir / MANIFEST).is_file():  # its sets would become versions
        raise ReportError(
            f"{results_dir} is one version, and a site is of a folder of them. Name {results_dir.parent}, or build the"
            f" pages of this one alone: nox -s report -- {results_dir}"
        )
    if not names:
        raise ReportError(f"{results_dir} has no folder of a version. Put the results of a version into one.")
    if LATEST in names:
        raise ReportError(f"{results_dir / LATEST} cannot be a version: that is the address of the newest. Rename it.")
    if INCOMING in names:
        raise ReportError(
            f"{results_dir / INCOMING} is no version: results that a workflow proposes are there until somebody has"
            f" looked at them. Move each of its folders to {results_dir / 'YEAR.MONTH' / 'HOST'} and name it in the"
            " report.toml there."
        )
    return sorted(names, key=version_order, reverse=True)


def _sha256_of(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with told_when_unreadable(path):  # the site's folder is not at fault
            content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _common() -> Iterator[Path]:
    """Yield what every version is made of: the theme and the pages that all have, the code, and what it reads."""
    yield from _files(guide.BOOK)
    yield from (path for path in guide.PAGES.values() if guide.BOOK not in path.parents)
    for folder in ("reports", "suite", "tasks/matrices"):
        files = (path for path in _files(ROOT / folder) if RESULTS not in path.parents)
        yield from (path for path in files if path.suffix in {".py", ".toml", ".md"})
    yield ROOT / "tasks" / "catalog.toml"
    yield ROOT / "containers" / "pins" / "report.txt"


def _check_replaceable(out_dir: Path, names: Sequence[str]) -> None:
    """Raise ReportError unless all that would be replaced or removed is of an earlier site."""
    with told_when_unwritable(out_dir):
        if out_dir.exists() and not out_dir.is_dir():
            raise ReportError(f"{out_dir} is a file, so no site can be written there. Choose another folder.")
        if out_dir.is_dir() and any(out_dir.iterdir()) and not (out_dir / VERSIONS_FILE).is_file():
            raise ReportError(
                f"{out_dir} holds files that are no site, and a site would replace them."
                " Choose a new or an empty folder."
            )
        for folder in {*_reports_in(out_dir), *(out_dir / name for name in (*names, LATEST))}:
            check_replaceable(folder)


def _reports_in(site: Path) -> list[Path]:
    """Return the folders of versions; a user's own, as ``.git``, have no list of what labscale wrote."""
    return [path.parent.parent for path in site.glob(f"*/{LIST}")]


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="nox -s publish --", description="Build the site of all versions.")
    parser.add_argument(
        "--results",
        type=results_path,
        default=RESULTS,
        metavar="DIR",
        help="folder of versions (default: reports/results)",
    )
    parser.add_argument(
        "--out", type=any_path, default=Path("site"), metavar="DIR", help="folder to write (default: %(default)s)"
    )
    options = parser.read(arguments)
    built = publish(options.results, options.out.resolve())
    print(f"built {', '.join(built) or 'nothing: no version has changed'}")
    print(options.out / "index.html")
    return 0
