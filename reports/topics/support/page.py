"""The page that says what ran where, and what cannot run."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Final

from reports.display.html import Html, answer_of_page, bullets, html_table, link, paragraph
from reports.sets.version import Version
from reports.topics.support import tables
from reports.topics.support.model import Impossible, Refusal, Training, most, newest, read_impossible, trainings
from suite.files.wording import counted
from suite.matrix.catalog import load_catalog

PAGES: Final[Mapping[str, str]] = {"env_check": "env-check.html", "plan": "commands.html"}  # command -> its page


def opening(version: Version) -> Html:
    """The answer: what ran with what on which hardware, how often, and what never did."""
    return answer_of_page(answer(trainings(version)))


def answer(found: Sequence[Training]) -> str:
    """Say in three sentences what ran, how often, and what never did. Pure."""
    if not found:
        return "No stored run has completed, so nothing is known to run."
    catalog = load_catalog()
    libraries = sorted({one.rl_library for one in found})
    engines = [tables.physics(stack) for stack in catalog.stacks if any(one.stack == stack for one in found)]
    sizes = [tables.size_text(one) for one in most(found)]
    _, ways_missing = tables.ways_that_ran(found)
    missing = [
        *(f"with {library}" for library in catalog.libraries if library not in libraries),
        *(f"with {tables.physics(stack)}" for stack in catalog.stacks if all(one.stack != stack for one in found)),
        *ways_missing,
    ]
    last = newest(found)
    return (
        f"{_listed(libraries, 'and')} ran with {_listed(engines, 'and')}, on up to {_listed(sizes, 'and')}."
        f" {counted(len(found), 'training')} completed in all versions, repeats among them, the last on"
        f" {tables.day_text(last.day)}." + (f" None ran {_listed(missing, 'or')}." if missing else "")
    )


def libraries(version: Version) -> Html:
    """RL libraries by physics and device."""
    found, catalog = trainings(version), load_catalog()
    names = ["RL library", *tables.headings(tables.columns(catalog, found))]
    rows = tables.library_rows(catalog, found)
    return html_table(names, rows, label="RL libraries and physics", num_text_columns=len(names))


def tasks(version: Version) -> Html:
    """Tasks with what draws their pictures, by physics and device."""
    found, catalog = trainings(version), load_catalog()
    names = ["Task", "Renderer", *tables.headings(tables.columns(catalog, found))]
    return html_table(names, tables.task_rows(catalog, found), label="Tasks", num_text_columns=len(names))


def ways(version: Version) -> Html:
    """Where processes were started, and by which launchers they can be."""
    rows = tables.way_rows(trainings(version))
    return html_table(["Started", "Launchers", "Most that ran"], rows, label="Ways to start", num_text_columns=3)


def systems(version: Version) -> Html:
    """Every combination that ran."""
    names = ["RL library", "Physics and hardware", "Started", "Tasks", "GPUs or processes", "Runs", "Last run"]
    rows = tables.system_rows(trainings(version))
    if not rows:
        return paragraph("No stored run has completed.")
    kinds = ("GPUs or processes", "Last run")
    return html_table(names, rows, label="Every combination that ran", num_text_columns=4, text_headings=kinds)


def impossible() -> Html:
    """What cannot run, why, what labscale says to it, and who says so."""
    return bullets(_impossible(one) for one in read_impossible())


def _impossible(one: Impossible) -> Html:
    what = _code(f"{one.what}.")
    strong = Html(markup=f"<strong>{what.markup}</strong>", text=what.text)
    sources = [_source(source) for source in one.sources]
    looked_up = _code(f"Looked up on {tables.day_text(one.looked_up)}: ")
    return _joined(
        [
            _joined([strong, _code(one.reason), *_refusal(one.refusal)], " "),
            _joined([looked_up, _joined(sources, ", "), _code(".")], ""),
        ],
        " ",
    )


def _refusal(refusal: Refusal | None) -> list[Html]:
    """Which command refuses it, with a link to its page, and in which words; nothing where nobody can ask."""
    if refusal is None:
        return []
    command = link(refusal.by, PAGES[refusal.by])
    return [_joined([_code("labscale refuses it: "), command, _code(f" says `{refusal.says}`.")], "")]


def _joined(parts: Sequence[Html], between: str) -> Html:
    return Html(markup=between.join(part.markup for part in parts), text=between.join(part.text for part in parts))


def _source(source: str) -> Html:
    """An address as a link with the name of its site; both may break after a dot or slash."""
    is_address = source.startswith("https://")
    text = _site(source) if is_address else source
    shown = re.sub(r"([./])", r"\1<wbr>", html.escape(text))
    return Html(markup=f'<a href="{html.escape(source)}">{shown}</a>' if is_address else shown, text=text)


def _site(address: str) -> str:
    """The host of an address, which says whose word it is: ``github.com/isaac-sim/IsaacLab``."""
    host, *path = address.removeprefix("https://").split("/")
    return "/".join([host, *path[:2]]) if host == "github.com" else host


def _code(text: str) -> Html:
    """Markdown's backquotes become code."""
    return Html(markup=re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text)), text=text.replace("`", ""))


def _listed(names: Sequence[str], word: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
