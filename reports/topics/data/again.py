"""The command that measures a case again, with the commit that measured it and its raw file."""

import html
import shlex
from typing import Final

from reports.analysis.environments import commit_of
from reports.display.html import MISSING, Cell, Html, html_table, link, paragraph, together
from reports.sets.planned import MATRIX, numbered_case_ids
from reports.sets.version import ResultSet, Version
from reports.topics.data.downloads import DATA_FOLDER
from suite.files.paths import ROOT
from suite.schema.record import CaseResult, Device

DEVICES: Final[tuple[Device, ...]] = ("cuda", "cpu")
CASES: Final = "cases"  # the folder of a set


def again(version: Version) -> Html:
    """One row a case of each set; without a command if no matrix of this labscale has it."""
    matrices = _matrices()
    table = html_table(
        ["Case", "Command after `python3 -m nox -s bench --`", "Commit", "Raw file"],
        (_row(one, result, matrices) for one in version.sets for result in one.campaign.results if result.completed),
        label="How to measure a case again",
        num_text_columns=4,
    )
    rule = "The raw file names the versions of all packages. A commit with local changes cannot be checked out."
    return together([paragraph(rule), table])


def _matrices() -> dict[str, str]:
    """Case id -> the matrix that has it; ``MATRIX`` where several have."""
    names = sorted(path.stem for path in (ROOT / "tasks" / "matrices").glob("*.toml"))
    found: dict[str, str] = {}
    for name in (MATRIX, *names):
        for case_id in _case_ids(name):
            found.setdefault(case_id, name)
    return found


def _case_ids(matrix: str) -> list[str]:
    """Of a matrix on GPUs and on the CPU, without what asks for all GPUs of whatever machine it runs on."""
    return [case_id for device in DEVICES for case_id in numbered_case_ids(matrix, device=device)]


def _row(one: ResultSet, result: CaseResult, matrices: dict[str, str]) -> list[Cell]:
    case_id = result.case.case_id
    file = f"{DATA_FOLDER}/{one.name or 'results'}/{CASES}/{case_id}.json"
    return [
        case_id,
        _command(case_id, matrices, rounds=len(result.completed)),
        commit_of(result.completed[0].environment) or MISSING,
        link(one.title or "samples", file),
    ]


def _command(case_id: str, matrices: dict[str, str], *, rounds: int) -> Html | str:
    if case_id not in matrices:
        return MISSING
    arguments = ["--matrix", matrices[case_id], "--case", case_id, "--repeats", str(rounds)]
    text = shlex.join(arguments)
    return Html(markup=f"<code>{html.escape(text)}</code>", text=text)
