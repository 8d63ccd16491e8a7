"""Which GPU models were measured, with what, and which nobody has measured."""

from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.curves import task_name
from reports.display.addresses import page_of_gpu
from reports.display.html import Cell, Html, html_table, link
from reports.display.topic import Figures
from reports.sets.version import Version
from suite.files.wording import counted
from suite.schema.record import RunRecord

ASKED_FOR: Final = ("L40S", "RTX PRO 6000", "A100", "B200")  # what clusters have and readers ask for


def models(version: Version) -> Html:
    """One row a GPU model, of older versions too; those that nobody measured share a row that says so."""
    rows = {model: _row(model, records) for model, records in _by_model(version).items()}
    for older in version.older:
        for model, records in _by_model(older).items():
            rows.setdefault(model, _row(model, records, of=older))
    missing = [name for name in ASKED_FOR if not any(name in model for model in rows)]
    empty: list[list[Cell]] = [[", ".join(missing), "none", "nobody has sent results yet"]] if missing else []
    return html_table(
        ["GPU", "GPUs used", "Tasks and runs"],
        [*(row for _, row in sorted(rows.items())), *empty],
        label="GPU models",
        num_text_columns=3,
    )


def model_figures(version: Version) -> Mapping[str, Figures]:
    """Return GPU model -> how many runs this version has on it, and on which numbers of GPUs."""
    return {
        model: {"runs": len(records), "ranks": sorted({record.case.world_size for record in records})}
        for model, records in _by_model(version).items()
    }


def _by_model(version: Version) -> Mapping[str, list[RunRecord]]:
    found: dict[str, list[RunRecord]] = {}
    for one in version.sets:
        for record in one.campaign.completed:
            for model in {gpu.name for gpu in record.environment.gpus}:
                found.setdefault(model, []).append(record)
    return found


def _row(model: str, records: Sequence[RunRecord], *, of: Version | None = None) -> list[Cell]:
    sizes = sorted({record.case.world_size for record in records})
    said = ", ".join(sorted({task_name(record.case.task) for record in records}))
    runs = f"{said}; {counted(len(records), 'run')}{f', version {of.name}' if of else ''}"
    folder = f"../{of.name}/" if of else ""
    return [link(model, f"{folder}{page_of_gpu(model)}.html"), ", ".join(map(str, sizes)), runs]
