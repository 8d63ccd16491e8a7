"""What can be taken away: the stored results as they are in git, and tables made of them."""

import hashlib

from reports.display.contributors import listing as listing_of_contributors
from reports.display.html import MISSING, Cell, Displayed, Html, answer_of_page, heading, html_table, link, together
from reports.sets.version import Version
from reports.topics.data.downloads import DATA_FOLDER, counts, files, stored_files, with_env_checks
from suite.files.wording import counted


def answer(version: Version) -> Html:
    """Say how many files of sets there are, and how large they are."""
    found = counts(stored_files(version))
    size_mb, sets = found["bytes"] / 1e6, counted(len(version.sets), "set")
    return answer_of_page(
        f"{counted(found['files'], 'file')} ({size_mb:.0f} MB) have every stored sample of {sets}."
        " Each can be downloaded here, and one command computes the figures again."
    )


def listing(version: Version) -> Html:
    """Every file with its hash, by set; with its size where it has what was measured, not what was made of that."""
    parts: list[Displayed] = [listing_of_contributors(version)]
    sizes = {f"{one.name}/{name}": size for one in with_env_checks(version) for name, size in one.sizes.items()}
    for title, members in files(version).items():
        rows = [_row(name, content, sizes.get(name)) for name, content in members.items()]
        headings = ["File", "Size in kB", "SHA-256"]
        if not sizes.keys() & members.keys():
            headings, rows = [headings[0], headings[2]], [[row[0], row[2]] for row in rows]
        parts.append(heading(title))
        parts.append(html_table(headings, rows, label=f"Files of {title}"))
    return together(parts)


def _row(name: str, content: bytes, size_bytes: int | None) -> list[Cell]:
    digest = hashlib.sha256(content).hexdigest()
    size = MISSING if size_bytes is None else f"{size_bytes / 1000:.1f}"
    return [link(name, f"{DATA_FOLDER}/{name}"), size, Html(markup=f"<code>{digest}</code>", text=digest)]
