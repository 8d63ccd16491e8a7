"""The part *Run it* of the book: how to run labscale, on pages that also read well as Markdown in the checkout.

A page is a file without frontmatter: its heading is its title, and its first paragraph its description. Pages link to
each other only, so that the same link works in the checkout and in the site.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from suite.files.paths import ROOT

BOOK: Final = ROOT / "book"
FOLDER: Final = BOOK / "run"
PAGES: Final[Mapping[str, Path]] = {
    "first-run": FOLDER / "first-run.md",
    "your-gpus": FOLDER / "your-gpus.md",
    "own-task": ROOT / "OWN_TASK.md",
    "results": FOLDER / "results.md",
    "env-check": FOLDER / "env-check.md",
    "clusters": FOLDER / "clusters.md",
    "containers": FOLDER / "containers.md",
    "offline": FOLDER / "offline.md",
    "where": FOLDER / "where.md",
    "commands": FOLDER / "commands.md",
    "changelog": ROOT / "CHANGELOG.md",
}
_NAMES: Final = {path.name: name for name, path in PAGES.items()}


def sources() -> dict[str, str]:
    """Name of every page -> its MyST text with frontmatter, in the order of the contents."""
    return {name: _source(path.read_text(encoding="utf-8")) for name, path in PAGES.items()}


def _source(text: str) -> str:
    heading, first, body = text.split("\n\n", maxsplit=2)
    description = " ".join(first.split())  # the theme shows it below the title
    frontmatter = {"title": json.dumps(heading.removeprefix("# ")), "description": json.dumps(description)}
    lines = [f"{name}: {value}" for name, value in frontmatter.items()]
    linked = re.sub(r"\]\((?:\.\./)*([\w-]+\.md)\)", lambda link: f"]({_NAMES[link[1]]}.ipynb)", body)
    return "\n".join(["---", *lines, "---", "", linked])
