"""Where results came from, as tables: machines, versions, and what env_check said there. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from reports.inside import core_probe_us
from reports.places import Place, hardware
from reports.tables import MISSING, Html, count, html_table, paragraph, together
from suite.reduce import round_time_s
from suite.schema import CaseResult, CheckResult

SHORT_HASH_LENGTH: Final = 12
WORTH_SHOWING: Final = ("failure", "warning", "not_checked")


def places_table(places: Sequence[Place], *, label: str) -> Html:
    """One column per environment, one row per fact; facts that nothing is known of are shown as such."""
    facts = [_place_facts(place) for place in places]
    names = list(dict.fromkeys(name for column in facts for name in column))
    headings = ["Fact", *(f"Environment {index}" for index in range(1, len(facts) + 1))]
    rows = ([name, *(column.get(name) or MISSING for column in facts)] for name in names)
    return html_table(headings, rows, label=label, num_text_columns=len(headings))


def _place_facts(place: Place) -> dict[str, str | None]:
    where = place.environment
    commit = where.git_commit and where.git_commit[:SHORT_HASH_LENGTH]
    return {
        "Label": where.host_label,
        "Hardware": hardware(where),
        "Processor": where.cpu_model,
        "CPUs": None if where.num_cpus is None else str(where.num_cpus),
        "Memory": None if where.memory_gb is None else f"{where.memory_gb:.0f} GB",
        "GPU driver": where.driver_version,
        "CUDA of the driver": where.cuda_driver_version,
        "Operating system": where.os,
        "Kernel": where.kernel,
        "labscale": where.suite_version,
        "Commit": f"{commit}, with local changes" if commit and where.git_dirty else commit,
        "Hash of the worker's pins": where.worker_pins_sha256 and where.worker_pins_sha256[:SHORT_HASH_LENGTH],
        "Hash of the assets": where.asset_sha256 and where.asset_sha256[:SHORT_HASH_LENGTH],
        "Rounds": str(place.num_rounds),
        "First round started": place.first_started_utc,
        "Last round started": place.last_started_utc,
        "Packages": ", ".join(f"{name} {version}" for name, version in place.versions.items()) or None,
    }


def interference_rounds(test: CaseResult, *, label: str) -> Html:
    """What the rounds of an interference test took, in the order in which they ran."""
    return html_table(
        ["Round", "Others beside it", "Iteration time in s", "Core probe in µs"],
        (
            [str(record.round), count(record.neighbours), f"{round_time_s(record):.4f}", count(core_probe_us(record))]
            for record in test.completed
        ),
        label=label,
    )


def checks(found: Sequence[CheckResult], repairs: Mapping[str, str], *, label: str) -> Html:
    """How many checks said what, and every one that did not say ok."""
    if not found:
        return paragraph("env_check was not part of labscale yet when this was measured, so nothing is known.")
    counts = Counter(check.verdict.replace("_", " ") for check in found)
    said = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    shown = [check for check in found if check.verdict in WORTH_SHOWING]
    if not shown:
        return paragraph(f"{len(found)} checks: {said}.")
    table = html_table(
        ["Check", "Verdict", "Found", "Repair"],
        (
            [check.name, check.verdict.replace("_", " "), check.found, repairs.get(check.name, MISSING)]
            for check in shown
        ),
        label=label,
        num_text_columns=4,
    )
    return together([paragraph(f"{len(found)} checks: {said}."), table])
