"""Tables of the page as HTML. Pure.

Every table is read in a browser and by screen readers, so cells say their unit in the heading and ``n/a`` where nothing
was measured.
"""

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.analysis import CaseRow
from reports.places import Place, hardware

MISSING = "n/a"
SHORT_HASH_LENGTH = 12


@dataclass(frozen=True, kw_only=True)
class Html:
    """Markup with the text a terminal would show instead; a notebook displays it."""

    markup: str
    text: str

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}


# --- values as text ----------------------------------------------------------------------------------------------


def seconds(value: float | None) -> str:
    """Three significant digits: ``0.0123``, ``1.23``, ``123``."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"  # noqa: PLR2004 - where three digits need no point


def count(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    return MISSING if value is None else f"{100 * value:.1f} %"


def outcomes(row: CaseRow) -> str:
    """``3 completed``, ``2 completed, 1 hung``."""
    return ", ".join(f"{rounds} {name}" for name, rounds in sorted(row.outcome_counts.items())) or "none"


# --- tables ------------------------------------------------------------------------------------------------------


def html_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, label: str, num_text_columns: int = 1
) -> Html:
    """A table in a region that scrolls sideways; all but the first ``num_text_columns`` columns are figures.

    The first cell of a row is its heading.
    """
    rows = [list(row) for row in rows]
    kinds = ["" if index < num_text_columns else ' class="figure"' for index in range(len(headings))]
    names = [html.escape(heading) for heading in headings]
    head = "".join(f'<th scope="col"{kind}>{name}</th>' for kind, name in zip(kinds, names, strict=True))
    # The heading again in every cell: on a phone a row is shown as a block of its own.
    starts = [f'<td{kind} data-heading="{name}">' for kind, name in zip(kinds, names, strict=True)]
    body = "".join(f"<tr>{_cells(row, starts)}</tr>\n" for row in rows)
    markup = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(label)}">'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )
    return Html(markup=markup, text="\n".join("\t".join(row) for row in [list(headings), *rows]))


def _cells(row: Sequence[str], starts: Sequence[str]) -> str:
    first, *rest = row
    heading = html.escape(first).replace("/", "/<wbr>", 1)  # a case id may break after its series
    cells = "".join(f"{start}{html.escape(text)}</td>" for start, text in zip(starts[1:], rest, strict=True))
    return f'<th scope="row">{heading}</th>{cells}'


def headline(rows: Sequence[CaseRow]) -> Html:
    """Every case of the campaign, whatever became of it."""
    return html_table(
        ["Case", "Ranks", "Iteration time in s", "Total FPS", "Speed-up", "Efficiency", "Rounds"],
        (
            [
                row.case_id,
                f"{row.world_size} ({row.topology})",
                seconds(row.iteration_time_s),
                count(row.total_fps),
                ratio(row.speedup),
                percent(row.scaling_efficiency),
                outcomes(row),
            ]
            for row in rows
        ),
        label="All cases",
    )


def speedups(rows: Sequence[CaseRow]) -> Html:
    return html_table(
        ["Case", "Ranks", "Baseline ranks", "Speed-up", "Ideal", "Efficiency"],
        (
            [
                row.case_id,
                str(row.world_size),
                count(row.baseline_world_size),
                ratio(row.speedup),
                ratio(row.ideal_speedup),
                percent(row.scaling_efficiency),
            ]
            for row in rows
        ),
        label="Speed-up and efficiency",
    )


def throughput(rows: Sequence[CaseRow]) -> Html:
    return html_table(
        [
            "Case",
            "Ranks",
            "Total FPS",
            "Iteration time in s",
            "Fastest round",
            "Slowest round",
            "Interval of the median",
        ],
        (
            [
                row.case_id,
                str(row.world_size),
                count(row.total_fps),
                seconds(row.iteration_time_s),
                seconds(row.iteration_time_min_s),
                seconds(row.iteration_time_max_s),
                _interval(row.iteration_time_interval_s),
            ]
            for row in rows
        ),
        label="Throughput and iteration time",
    )


def _interval(interval: tuple[float, float] | None) -> str:
    return MISSING if interval is None else f"{seconds(interval[0])} to {seconds(interval[1])}"


def time_split(rows: Sequence[CaseRow]) -> Html:
    return html_table(
        ["Case", "Ranks", "Collection", "Environment steps", "Learning", "All-reduce", "Rank skew"],
        (
            [
                row.case_id,
                str(row.world_size),
                percent(row.collection_share),
                percent(row.environment_step_share),
                percent(row.learning_share),
                percent(row.all_reduce_share),
                percent(row.rank_skew),
            ]
            for row in rows
        ),
        label="Shares of the iteration time",
    )


def failures(rows: Sequence[CaseRow]) -> Html:
    """Every round that did not complete, with its reason; a sentence when there is none."""
    failed = [failure for row in rows for failure in row.failures]
    if not failed:
        return paragraph("Every round of every case completed.")
    return html_table(
        ["Case", "Round", "Outcome", "Reason"],
        (
            [failure.case_id, str(failure.round), failure.outcome, failure.reason or "no reason was recorded"]
            for failure in failed
        ),
        label="Rounds that did not complete",
        num_text_columns=4,
    )


# --- words made from the results ---------------------------------------------------------------------------------


def summary(rows: Sequence[CaseRow], places: Sequence[Place]) -> Html:
    """One paragraph: how many cases of what, on what, and what became of them."""
    totals = Counter(failure.outcome for row in rows for failure in row.failures)
    completed = sum(row.rounds_completed for row in rows)
    series = len({row.series for row in rows})
    counts = ", ".join([f"{completed} completed", *(f"{rounds} {name}" for name, rounds in sorted(totals.items()))])
    where = "; ".join(dict.fromkeys(where_it_ran(place) for place in places))
    return paragraph(f"{len(rows)} cases in {series} series on {where}. Rounds: {counts}.")


def caution(rows: Sequence[CaseRow], places: Sequence[Place]) -> Html:
    """What a reader must know before using the numbers; empty when there is nothing."""
    notes = []
    if any(row.device == "cpu" for row in rows):
        notes.append(
            "Cases on the device cpu show that the whole chain works: the simulation, training with several ranks, and"
            " this report. Their times are no statement about performance on GPUs, and ranks that share the cores of"
            " one processor cannot be expected to be faster."
        )
    if any(row.rounds_completed == 1 for row in rows):
        notes.append("Where only one round completed, nothing is known about the spread between rounds.")
    if len(places) > 1:
        notes.append("The results come from more than one environment; a speed-up between them mixes both.")
    body = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    title = '<p class="admonition-title">Before you use these numbers</p>'
    return Html(
        markup=f'<aside class="admonition warning">{title}{body}</aside>' if notes else "", text="\n".join(notes)
    )


def where_it_ran(place: Place) -> str:
    label = "" if place.environment.host_label is None else f" [{place.environment.host_label}]"
    return hardware(place.environment) + label


def series_facts(rows: Sequence[CaseRow]) -> Html:
    """What the cases of one series have in common."""

    def values(name: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(row, name)) for row in rows))

    constant = "environments of all ranks together" if rows[0].scaling == "strong" else "environments of each rank"
    return paragraph(
        f"{values('scaling').capitalize()} scaling of {values('task')} with {values('rl_library')} on the stack"
        f" {values('stack')}, device {values('device')}, minibatch rule {values('minibatch_rule')}."
        f" Held constant: the number of {constant}."
    )


def paragraph(text: str) -> Html:
    return Html(markup=f"<p>{html.escape(text)}</p>", text=text)


def places_table(places: Sequence[Place]) -> Html:
    """One column per environment, one row per fact; facts that nothing is known of are shown as such."""
    facts = [_place_facts(place) for place in places]
    names = list(dict.fromkeys(name for column in facts for name in column))
    headings = ["Fact", *(f"Environment {index}" for index in range(1, len(facts) + 1))]
    rows = ([name, *(column.get(name) or MISSING for column in facts)] for name in names)
    return html_table(headings, rows, label="Environments", num_text_columns=len(headings))


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
        **{f"Package {name}": version for name, version in place.versions.items()},
    }
