"""The figures of README.md against ``figures.csv`` of the versions that it shows."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reports.verification.figures import FILE, read_figures
from reports.verification.finding import Finding, as_far_as_possible
from reports.verification.hashes import is_version
from reports.verification.samples.stored import StoredSet

_MADE: Final = re.compile(r"<!-- begin: made by.*?-->(.*?)<!-- end -->", re.DOTALL)
_LINK: Final = re.compile(r"\[[^]]*\]\(reports/results/([^)/]+)/([^)/]+)[^)]*\)")
_FIGURE: Final = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)(?![\w-]|\.\d)")
_MAKE_AGAIN: Final = "Make it again with `python -m reports.site.readme`."


def check_readme(version: Path, sets: Sequence[StoredSet]) -> list[Finding]:
    """Check README.md of the repository, if the version is one of ``reports/results`` there and has figures.

    What it shows of another version there is checked with that one.
    """
    if version.resolve().parts[-3:-1] != ("reports", "results") or not (version / FILE).is_file():
        return []
    path = version.resolve().parents[2] / "README.md"
    if not path.is_file():
        return []
    text = "".join(_MADE.findall(path.read_text(encoding="utf-8")))
    return list(as_far_as_possible(path.name, _check(path.name, text, version, sets)))


def _check(where: str, text: str, version: Path, sets: Sequence[StoredSet]) -> Iterator[Finding]:
    """Check each text before a link to a set: all its figures are those of one configuration, or sizes of some."""
    by_name, published = {one.folder.name: one for one in sets}, _roundings(version)
    end, number = 0, 0
    for link in _LINK.finditer(text):
        figures, (version_name, name) = _FIGURE.findall(text[end : link.start()]), link.groups()
        end, number = link.end(), number + len(figures)
        if version_name != version.name and is_version(version.parent / version_name):
            continue
        if version_name != version.name or name not in by_name:
            got, expected = f"to {version_name}/{name}", f"to a set of {version.name}"
            yield Finding(where=where, what="a link", got=got, expected=expected, next_step=_MAKE_AGAIN)
            continue
        sizes = {f"{one.case[size]:,}" for one in by_name[name].cases for size in ("num_envs", "num_envs_global")}
        known = [texts | sizes for begin, texts in published.items() if begin.startswith(f"{name}/")]
        unknown = min(([figure for figure in figures if figure not in texts] for texts in known), key=len)
        if unknown:
            what, got = f"the text before the link to {name}", f"with {', '.join(unknown)}"
            expected = f"with figures of one configuration of {name}"
            yield Finding(where=where, what=what, got=got, expected=expected, next_step=_MAKE_AGAIN)
    if not number:
        got, expected = "without a figure", "figures, each with a link to its set"
        yield Finding(where=where, what="what is made by a program", got=got, expected=expected, next_step=_MAKE_AGAIN)


def _roundings(version: Path) -> Mapping[str, set[str]]:
    """Return how the figures of each configuration may be written, by what their ids begin with."""
    texts: dict[str, set[str]] = defaultdict(set)
    for row in read_figures(version / FILE):
        for value in (float(row[name]) for name in ("value", "low", "high") if row[name]):
            # A rate without decimals, a ratio with two, a percentage with one.
            texts[row["id"].rpartition("/")[0]] |= {f"{value:,.0f}", f"{value:.2f}", f"{100 * value:.1f}"}
    return texts
