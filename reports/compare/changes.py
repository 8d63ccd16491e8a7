"""Which campaigns a change adds, changes or removes, as Markdown for its pull request. Reads folders of versions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reports.compare.comparison import compare
from reports.compare.text import code, markdown, markdown_table
from reports.display.html import estimated
from reports.figures.lines import estimate
from reports.figures.tables import rows_by_id
from reports.sets.version import read_version, version_order
from reports.verification.command import verify_folder
from suite.errors import LabscaleError
from suite.files.input_file import read_input
from suite.files.wording import counted

MAX_FAULTS: Final = 12  # of one campaign
MAX_CHARACTERS: Final = 50_000  # GitHub takes 65,536

type Campaigns = Mapping[str, Path]  # <version>/<campaign> -> its folder


def changes(before: Path, after: Path, *, threshold: float) -> str:
    """Return a section for each campaign that differs; too many are counted only.

    A changed campaign is compared with itself, an added one with that of its name in the newest earlier version.
    """
    old, new = (_campaigns(results) for results in (before, after))
    either = sorted(old.keys() | new.keys(), key=version_order)
    names = [name for name in either if name not in old or name not in new or _files(old[name]) != _files(new[name])]
    text = "" if names else "No campaign is added, changed or removed.\n"
    for index, name in enumerate(names):
        section = _section(name, old, new, threshold)
        if len(text) + len(section) > MAX_CHARACTERS:
            left = counted(len(names) - index, "more campaign")
            return f"{text}Left out, as a comment has no room for them: {left}.\n"
        text += section
    return text


def _campaigns(results: Path) -> Campaigns:
    versions = [path for path in results.iterdir() if path.is_dir()] if results.is_dir() else []
    folders = [path for version in versions for path in version.iterdir() if (path / "cases").is_dir()]
    return {path.relative_to(results).as_posix(): path for path in folders}


def _files(folder: Path) -> Mapping[Path, bytes]:
    return {path.relative_to(folder): read_input(path) for path in folder.rglob("*") if path.is_file()}


def _section(name: str, old: Campaigns, new: Campaigns, threshold: float) -> str:
    if name not in new:
        return f"### {code(name)}, removed\n\n"
    since = name if name in old else _earlier(name, old)
    kind = "changed" if name in old else f"added, since {code(since)}" if since else "added"
    parts = [f"### {code(name)}, {kind}"]
    try:
        parts.append(_look(new[name]))
        if since is None:
            parts.append("No earlier version has a campaign of this name, so there is nothing to compare it with.\n")
        else:
            both = (read_version(folder, name="") for folder in (old[since], new[name]))
            parts.append(markdown(compare(*both, threshold=threshold)))
    except LabscaleError as error:
        parts.append(f"It cannot be read. {code(str(error))}\n")
    return "\n\n".join(parts) + "\n"


def _earlier(name: str, old: Campaigns) -> str | None:
    version, _, campaign = name.partition("/")
    versions = [other.partition("/")[0] for other in old if other.endswith(f"/{campaign}")]
    earlier = [other for other in versions if version_order(other) < version_order(version)]
    return f"{max(earlier, key=version_order)}/{campaign}" if earlier else None


def _look(folder: Path) -> str:
    """What ``verify`` finds, and which shares of the ideal speed the campaign adds."""
    verified = verify_folder(folder)
    read = f"{counted(verified.cases, 'configuration')}, {counted(verified.rounds, 'run')}"
    read += f", {verified.samples:,} samples"
    faults = [f"- {code(str(fault))}" for fault in verified.findings]
    more = [f"- and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    word = counted(len(faults), "fault") if faults else "nothing differs"
    verdict = "\n".join([f"Computed again from the samples: {read}: {word}.", *faults[:MAX_FAULTS], *more])
    rows = [
        [code(figure["of"].partition("&configuration=")[2]), estimated(estimate(figure)), str(figure["runs"])]
        for name, figure in rows_by_id(read_version(folder, name="")).items()
        if name.endswith("/share_kept")
    ]
    return (
        f"{verdict}\n\n{markdown_table(('Several GPUs', 'Share of the ideal speed', 'Runs'), rows)}"
        if rows
        else verdict
    )
