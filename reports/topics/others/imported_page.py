"""Imported results of other tools, set by set, under the tool's own names. What a file does not say is n/a."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from reports.display.contributors import byline
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    aside,
    bullets,
    count,
    heading,
    html_table,
    paragraph,
    percent,
    ratio,
    seconds,
    together,
)
from reports.sets.imported.bundle import FORMAT, known
from reports.sets.imported.imported_set import ForeignCase, ForeignSet, RankZeroEfficiency, efficiencies
from reports.sets.imported.reading import ImportedRun
from reports.sets.imported.wording import RANK_0, case_name
from reports.sets.version import Version

_SHORT_HASH: Final = 12


def statement() -> Html:
    """How all of them were measured."""
    return together([paragraph(f"Format of the files: {FORMAT}."), aside("By the clock of rank 0", [RANK_0])])


def cases(version: Version) -> Html:
    return _of_every_set(version, lambda one: [byline(one.contributor), _cases(one)])


def scaling(version: Version) -> Html:
    return _of_every_set(version, lambda one: _scaling(one, efficiencies(one.cases)))


def runs(version: Version) -> Html:
    return _of_every_set(version, lambda one: [_runs(one)])


def places(version: Version) -> Html:
    return _of_every_set(version, lambda one: [_places(one)])


def _of_every_set(version: Version, show: Callable[[ForeignSet], Iterable[Displayed]]) -> Html:
    return together(part for one in version.foreign for part in (heading(title_of(one)), *show(one)))


def title_of(one: ForeignSet) -> str:
    return one.title or "Imported bundles"


def _cases(one: ForeignSet) -> Html:
    headings = [
        "Case (nodes x ranks)",
        "Runs",
        "Completed",
        "iteration_time_s",
        "Range over runs",
        "total_fps",
        "collection_fps",
    ]
    return html_table(headings, (_case(case) for case in one.cases), label=f"Cases of {title_of(one)}")


def _case(case: ForeignCase) -> list[str]:
    reach = case.iteration_time_range_s
    return [
        case_name(case),
        str(len(case.runs)),
        str(len(case.completed)),
        seconds(case.iteration_time_s),
        MISSING if reach is None else f"{seconds(reach[0])} to {seconds(reach[1])}",
        count(case.total_fps),
        count(case.collection_fps),
    ]


def _scaling(one: ForeignSet, found: Sequence[RankZeroEfficiency]) -> list[Displayed]:
    if not found:
        return [
            paragraph(
                "No two completed cases differ in the number of ranks and in nothing else, so there is no efficiency."
            )
        ]
    rows = (
        [
            case_name(item.case),
            item.kind,
            str(item.base.world_size),
            str(item.case.world_size),
            ratio(item.speedup),
            percent(item.efficiency),
        ]
        for item in found
    )
    headings = ["Case", "Scaling", "Ranks before", "Ranks", "Speed-up by rank 0", "Efficiency by rank 0"]
    table = html_table(headings, rows, label=f"Efficiencies of {title_of(one)} by rank 0", num_text_columns=2)
    above = sum(item.efficiency > 1 for item in found)
    notes = ["Made of iteration_time_s of rank 0, the mean over all iterations."]
    if above:
        notes.append(
            f"Above the ideal: {above} of {len(found)}. That is no speed: the mean of the fewest ranks holds slower"
            " first iterations, in which kernels are compiled. More iterations in a run make that smaller."
        )
    return [bullets(notes), table]


def _runs(one: ForeignSet) -> Html:
    headings = [
        "File",
        "status",
        "seed",
        "iterations_completed",
        "iteration_time_s mean",
        "std",
        "peak",
        "environment_step_time_s",
        "gpu_util_pct",
        "gpu_mem_gb",
        "ram_gb",
        "reward final_ema",
        "success_rate final_ema",
        "start_time_utc",
        "SHA-256",
    ]
    return html_table(headings, (_run(run) for run in one.runs), label=f"Runs of {title_of(one)}", num_text_columns=2)


def _run(run: ImportedRun) -> list[str]:
    bundle = run.bundle
    time_s = bundle.runtime.iteration_time_s
    return [
        run.name,
        bundle.run.status,
        str(bundle.run.seed),
        str(bundle.runtime.iterations_completed),
        seconds(time_s.mean),
        seconds(time_s.std),
        seconds(time_s.peak),
        seconds(bundle.environment_step_time_s),
        ratio(bundle.gpu_util_pct),
        ratio(bundle.gpu_mem_gb),
        ratio(bundle.ram_gb),
        ratio(bundle.reward),
        ratio(bundle.success),
        bundle.run.start_time_utc,
        run.sha256[:_SHORT_HASH],
    ]


def _places(one: ForeignSet) -> Html:
    """One column for each distinct machine and set of versions."""
    facts = list(dict.fromkeys(tuple(_facts(run).items()) for run in one.runs))
    headings = ["Fact", *(f"Environment {index}" for index in range(1, len(facts) + 1))]
    rows = ([name, *(dict(column)[name] or MISSING for column in facts)] for name, _ in facts[0])
    return html_table(headings, rows, label=f"Environments of {title_of(one)}", num_text_columns=len(headings))


def _facts(run: ImportedRun) -> dict[str, str | None]:
    hardware, versions = run.bundle.hardware, run.bundle.versions
    named = {name: value for name, value in versions.model_dump().items() if isinstance(value, str)}
    packages = {name: known(value) for name, value in named.items() if not name.startswith("git_")}
    writer = run.bundle.labscale_case_id
    return {
        "Written by": "Isaac Lab's benchmark" if writer is None else "labscale, beside samples of every rank",
        "Hardware": run.bundle.hardware_text,
        "Processor": known(hardware.cpu_name),
        "Physical cores": str(hardware.cpu_count or "") or None,
        "Memory": f"{hardware.ram_gb:.0f} GB" if hardware.ram_gb else None,
        "GPU driver": None,  # schema 1.4 has no field for it
        "Packages": ", ".join(f"{name} {value}" for name, value in packages.items() if value) or None,
        "Commit": versions.git_commit,
    }
