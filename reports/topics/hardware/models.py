"""Which GPU models were measured, with what, and which nobody has measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.curves import task_name
from reports.display.addresses import page_of_gpu
from reports.display.html import Cell, Html, html_table, link
from reports.sets.version import Version
from suite.files.wording import counted
from suite.schema.record import RunRecord

ASKED_FOR: Final = ("RTX 5090", "RTX 4090", "RTX PRO 6000", "L40S", "A100", "B200")  # what readers ask for


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What completed on a GPU model. ``ranks``: each number of them; ``tasks``: their ids."""

    runs: int
    ranks: tuple[int, ...]
    tasks: tuple[str, ...]


def models(version: Version) -> Html:
    """One row a GPU model, of older versions too; those that nobody measured share a row that says so."""
    rows = {model: _row(model, ran) for model, ran in by_model(version).items()}
    for model, (older, ran) in only_before(version).items():
        rows[model] = _row(model, ran, of=older)
    missing = [name for name in ASKED_FOR if not any(name in model for model in rows)]
    invitation = link("nobody has sent results yet: add yours", "data.html#add-your-results")
    empty: list[list[Cell]] = [[", ".join(missing), "none", invitation]] if missing else []
    return html_table(
        ["GPU", "GPUs used", "Tasks and runs"],
        [*(row for _, row in sorted(rows.items())), *empty],
        label="GPU models",
        num_text_columns=3,
    )


def by_model(version: Version) -> Mapping[str, Ran]:
    """Return each GPU model that a run of this version completed on, with what did."""
    found: dict[str, list[RunRecord]] = {}
    for one in version.sets:
        for record in one.campaign.completed:
            for model in {gpu.name for gpu in record.environment.gpus}:
                found.setdefault(model, []).append(record)
    return {model: _ran(records) for model, records in found.items()}


def only_before(version: Version) -> Mapping[str, tuple[str, Ran]]:
    """Return each GPU model that only older versions have, with the newest of them and what it has."""
    own, found = by_model(version), dict[str, tuple[str, Ran]]()
    for older in version.older:
        for model, ran in by_model(older).items():
            if model not in own:
                found.setdefault(model, (older.name, ran))
    return found


def _ran(records: Sequence[RunRecord]) -> Ran:
    return Ran(
        runs=len(records),
        ranks=tuple(sorted({record.case.world_size for record in records})),
        tasks=tuple(sorted({record.case.task for record in records})),
    )


def _row(model: str, ran: Ran, *, of: str | None = None) -> list[Cell]:
    said = ", ".join(sorted({*map(task_name, ran.tasks)}))
    runs = f"{said}; {counted(ran.runs, 'run')}{f', version {of}' if of else ''}"
    folder = f"../{of}/" if of else ""
    return [link(model, f"{folder}{page_of_gpu(model)}.html"), ", ".join(map(str, ran.ranks)), runs]
