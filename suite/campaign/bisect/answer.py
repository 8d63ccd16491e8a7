"""The answer of ``bench --bisect``: ``bisect.json`` with every step, and what the terminal shows."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from pydantic import ConfigDict, with_config
from rich import box
from rich.console import Console
from rich.table import Table

from suite.campaign.bisect.rule import Answer, Change, Step
from suite.files.json_file import read_json, replace_json
from suite.options.command_line import say
from suite.statistics.intervals import CONFIDENCE

ANSWER_FILE: Final = "bisect.json"


@with_config(ConfigDict(extra="allow"))
class _Stored(TypedDict):
    """The fields of ``bisect.json`` that are read."""

    case_id: str
    skipped: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the search knows so far; an answer ends it."""

    package: str
    case_id: str
    releases: tuple[str, ...]  # the oldest first
    steps: tuple[Step, ...] = ()
    tried: frozenset[str] = frozenset()
    skipped: dict[str, str] = field(default_factory=dict)  # release -> why it cannot be run
    answer: Answer | None = None


def read_skipped(path: Path, case_id: str) -> dict[str, str]:
    """Why releases could not be run when an earlier command tried them with this case.

    Raises:
        StoreError: the file cannot be read.
    """
    stored = read_json(path, _Stored, next_step="Move it away and run the same command again.")
    return stored["skipped"] if stored and stored["case_id"] == case_id else {}


def write_found(found: Found, path: Path) -> None:
    """Write every step with its times and ratios. The runs themselves are below ``steps``.

    Raises:
        StoreError: the file cannot be written.
    """
    answer = found.answer
    document = {
        "package": found.package,
        "case_id": found.case_id,
        "releases": found.releases,
        "steps": [
            {"times_s": dict(step.times_s), "changes": [_change_json(change) for change in step.changes]}
            for step in found.steps
        ],
        "skipped": found.skipped,
        "answer": answer and {**asdict(answer), "change": answer.change and _change_json(answer.change)},
    }
    replace_json(document, path)


def _change_json(change: Change) -> dict[str, object]:
    return {**asdict(change), "speed": change.speed}


def print_found(console: Console, found: Found) -> None:
    """Print a line for each change that was measured, which releases were passed over, and the answer."""
    console.print()
    if found.steps:
        console.print(_table(found))
    within = found.answer.skipped if found.answer else ()
    if outside := [release for release in found.skipped if release not in within]:
        say(console, f"Not measured, because they cannot be run (see above): {', '.join(outside)}", style="yellow")
    say(console, in_words(found), style="bold")


def _table(found: Found) -> Table:
    table = Table(title=found.case_id, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"from {found.package}")
    table.add_column("to")
    for name in ("runs", "times as fast", f"{CONFIDENCE:.0%} interval"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for step in found.steps:
        for change in step.changes:
            runs = f"{len(step.times_s[change.older])}, {len(step.times_s[change.newer])}"
            table.add_row(change.older, change.newer, runs, f"{change.ratio.value:.3f}", _range(change), change.speed)
        table.add_section()
    return table


def _range(change: Change) -> str:
    if change.ratio.interval is None:
        return "interval unknown"
    low, high = change.ratio.interval
    return f"{low:.3f} to {high:.3f}"


def in_words(found: Found) -> str:
    """The answer as one sentence, or two."""
    answer = found.answer
    if answer is None or answer.change is None:
        return f"Fewer than two releases of {found.package} run here, so nothing was compared."
    older, newer = answer.change.older, answer.change.newer
    numbers = f"{answer.change.ratio.value:.3f} times as fast ({_range(answer.change)})"
    if answer.verdict == "not slower":
        return (
            f"{found.case_id} is not surely slower with {found.package} {newer} than with {older}: {numbers}. More "
            "runs, with a larger --repeats, find smaller changes."
        )
    slower = f"{found.case_id} became slower between {found.package} {older} and {newer}: {numbers}."
    if answer.verdict == "unsure":
        return (
            f"{slower} {answer.middle} lies between them, and neither the change to it nor the change from it is sure. "
            "Give more runs, with a larger --repeats, to search on."
        )
    if not answer.skipped:
        return slower
    faults = "".join(f"\n  {release}: {found.skipped[release]}" for release in answer.skipped)
    return f"{slower} Between them could not be run:{faults}"
