"""What can be taken away: the stored results as they are in git, and tables made of them."""

import hashlib

from reports.display.contributors import listing as listing_of_contributors
from reports.display.html import Cell, Displayed, Html, answer_of_page, heading, html_table, link, together
from reports.sets.version import Version
from reports.topics.data.downloads import DATA_FOLDER, files
from reports.topics.data.stored_files import counts, stored_files
from suite.files.wording import counted


def answer(version: Version) -> Html:
    """Say how many files of sets and imported bundles there are, and how large they are."""
    found = counts(stored_files(version))
    size_mb, sets = found["bytes"] / 1e6, counted(len(version.sets), "set")
    imported = f" and {counted(len(version.foreign), 'folder')} of imported bundles" if version.foreign else ""
    return answer_of_page(
        f"{counted(found['files'], 'file')} ({size_mb:.0f} MB) have every stored sample of {sets}{imported}."
        " Each can be downloaded here, and one command computes the figures again."
    )


def listing(version: Version) -> Html:
    """Every file with its size and hash, by set."""
    parts: list[Displayed] = [listing_of_contributors(version)]
    for title, members in files(version).items():
        rows = (_row(name, content) for name, content in members.items())
        parts.append(heading(title))
        parts.append(html_table(["File", "Size in kB", "SHA-256"], rows, label=f"Files of {title}"))
    return together(parts)


def _row(name: str, content: bytes) -> list[Cell]:
    digest = hashlib.sha256(content).hexdigest()
    size = f"{len(content) / 1000:.1f}"
    return [link(name, f"{DATA_FOLDER}/{name}"), size, Html(markup=f"<code>{digest}</code>", text=digest)]
