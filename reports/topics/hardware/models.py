"""Which GPU models were measured, with what, and which nobody has measured."""

from collections.abc import Iterator, Mapping
from typing import Final

from reports.analysis.curves import task_name
from reports.display.addresses import page_of_gpu
from reports.display.html import Cell, Html, html_table, link
from reports.sets.version import Version
from suite.files.wording import counted
from suite.schema.record import RunRecord

ASKED_FOR: Final = ("L40S", "RTX PRO 6000", "A100", "B200")  # what clusters have and readers ask for


def models(version: Version) -> Html:
    """One row a GPU model; those that nobody measured have none of it."""
    by_model: dict[str, list[RunRecord]] = {}
    for one in version.sets:
        for record in one.campaign.completed:
            for model in {gpu.name for gpu in record.environment.gpus}:
                by_model.setdefault(model, []).append(record)
    missing = [name for name in ASKED_FOR if not any(name in model for model in by_model)]
    empty: list[list[Cell]] = [[", ".join(missing), "none", "nobody has sent results yet"]] if missing else []
    return html_table(
        ["GPU", "GPUs used", "Tasks and runs"],
        [*_rows(by_model), *empty],
        label="GPU models",
        num_text_columns=3,
    )


def _rows(by_model: Mapping[str, list[RunRecord]]) -> Iterator[list[Cell]]:
    for model, records in sorted(by_model.items()):
        sizes = sorted({record.case.world_size for record in records})
        said = ", ".join(sorted({task_name(record.case.task) for record in records}))
        runs = f"{said}; {counted(len(records), 'run')}"
        yield [link(model, f"{page_of_gpu(model)}.html"), ", ".join(map(str, sizes)), runs]
