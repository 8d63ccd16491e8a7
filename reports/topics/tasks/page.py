"""What is shown of one series. ``parts``: what each set has of it, shown one below the other."""

import html
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import task_name
from reports.analysis.start_ups import SAID, ColdAndWarm, cold_and_warm, headline
from reports.display import division, pair_tables, resource_tables, series_tables
from reports.display.charts import learning as learning_charts
from reports.display.charts import scaling as scaling_charts
from reports.display.charts import sweep as sweep_charts
from reports.display.charts import time_split as inside_charts
from reports.display.charts.drawing import named
from reports.display.html import Displayed, Html, bullets, fold, heading, link, paragraph, together
from reports.display.series_tables import ranks_text
from reports.sets.version import ResultSet, Version
from reports.topics.tasks import verdict_table
from reports.topics.tasks.start_up import parts_table, parts_title, start_up_answer, start_up_table
from suite.files.wording import counted
from suite.records.videos import Video, poster_path, video_path
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.round_flags import flags

VIDEOS: Final = "videos"  # anchor of their section


def videos(version: Version, task: str) -> Html:
    """Show the first video, and the others in a fold; nothing if the task has none."""
    found = [_figure(one, case, video) for one, case, video in _of_task(version, task)]
    if not found:
        return Html(markup="", text="")
    first, *others = found
    more = [fold(counted(len(others), "more video"), others)] if others else []
    return together([heading("What a training looks like", depth=2, anchor=VIDEOS), first, *more])


def _of_task(version: Version, task: str) -> Iterator[tuple[ResultSet, Case, Video]]:
    for one in version.scaling:
        for result in one.campaign.results:
            video = one.videos.get(result.case.case_id)
            if video is not None and task_name(result.case.task) == task:
                yield one, result.case, video


def _figure(one: ResultSet, case: Case, video: Video) -> Html:
    task, seen = html.escape(task_name(case.task)), counted(video.environments, "environment")
    place = f" of {one.title}" if one.title else ""
    caption = (
        f"The last {video.duration_s:.1f} s of a training of {case.case_id}{place}, in simulated time: {seen} of"
        f" {case.num_envs_global:,}, with {case.rl_library} on {ranks_text(case)}. Filmed in an uncounted run,"
        f" by Newton's renderer (Newton {video.versions.get('newton', 'unknown')}). SHA-256 {video.sha256[:12]}."
    )
    file, poster = (_address(one, path(one.folder, case.case_id)) for path in (video_path, poster_path))
    return Html(
        markup=(
            f'<figure class="task-picture"><video controls muted playsinline preload="none" poster="{poster}"'
            f' src="{file}" width="{video.width_px}" height="{video.height_px}"'
            f' aria-label="Video without sound: {task}, {seen} near the end of a training">'
            f'This browser shows no video. <a href="{file}">Download it</a> (MP4, AV1).</video>'
            f"<figcaption>{html.escape(caption)}"
            f' <a href="{file}">Download the video of {html.escape(case.case_id)}</a> (MP4, AV1).</figcaption></figure>'
        ),
        text=caption,
    )


def _address(one: ResultSet, path: Path) -> str:
    """Where the site has a file of a set."""
    return html.escape(f"data/{one.name or 'results'}/{path.relative_to(one.folder).as_posix()}")


SWEEPS: Final = "environments"  # anchor of the charts that the page of a task has above its series
OLDER_RULE: Final = (
    "Where these remarks say that there is no interval of the median, an older rule is meant, by which this campaign"
    f" decided: its interval took six rounds. Intervals above take {MIN_ROUNDS_FOR_INTERVAL}."
)


def facts(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [series_tables.series_facts(series.rows, series.kind)])


def cases(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(
        parts,
        lambda series: [series_tables.all_cases(series.rows, label=f"Cases of {named(series)}")],
    )


def verdicts(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(
        parts,
        lambda series: [
            verdict_table.verdicts(series.with_twins, label=f"Verdicts {named(series)}"),
            *verdict_table.serial_fractions(series.results, label=f"Serial fractions {named(series)}"),
        ],
    )


def speedup(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [_over_ranks(series, scaling_charts.speedup)])


def efficiency(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [_over_ranks(series, scaling_charts.efficiency)])


def throughput(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [_throughput(series)])


def _throughput(series: Campaign) -> Displayed:
    """The page of a task has the charts of environments above all its series."""
    if series.is_sweep and series.is_training:
        return bullets([link("How many environments on a GPU", f"#{SWEEPS}")])
    return sweep_charts.environments(series) if series.is_sweep else scaling_charts.throughput(series)


def gains(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [division.of_series(series, depth=5)])


def time_split(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [inside_charts.time_split(series)])


def rank_skew(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [series_tables.rank_skew(series)])


def resources(parts: Sequence[Campaign]) -> Html:
    def shown(series: Campaign) -> list[Displayed]:
        label = f"The host's cores, {named(series)}"
        host = resource_tables.host(series.rows, series.inside, label=label)
        return [resource_tables.memory_figure(series), resource_tables.energy_figure(series), host]

    return _of_every_set(parts, shown)


def start_up(parts: Sequence[Campaign]) -> Html:
    """How long cold and warm starts take, their parts in the set that says most of them, and a table of all cases."""
    most = _says_most(parts)

    def shown(series: Campaign) -> list[Displayed]:
        label = f"Start-up of {named(series)}"
        said = start_up_answer(series.results, where=series.where)
        depth = 5 if _has_headings(parts, series) else 4
        return [
            *([paragraph(said)] if said else []),
            *(_parts_of_starts(*most, depth=depth) if most and most[0] is series else []),
            start_up_table(_in_order(series), label=label),
        ]

    return together([_of_every_set(parts, shown), paragraph(SAID)])


def _says_most(parts: Sequence[Campaign]) -> tuple[Campaign, ColdAndWarm] | None:
    """The work that says most of cold beside warm, with its set; None if none has starts of both kinds."""
    bests = [(series, best) for series in parts if (best := headline(cold_and_warm(series.results))) is not None]
    most = headline([best for _, best in bests])
    return next(((series, best) for series, best in bests if best is most), None)


def _parts_of_starts(series: Campaign, most: ColdAndWarm, *, depth: int) -> list[Displayed]:
    """All work whose cold starts were made on purpose; else ``most``, which the title names."""
    designed = [each for each in cold_and_warm(series.results) if each.is_designed and each.has_both]
    return [heading(parts_title(most), depth=depth), parts_table(series, designed or [most])]


def learning(parts: Sequence[Campaign]) -> Html:
    return _of_every_set(parts, lambda series: [learning_charts.learning(series)])


def remarks(parts: Sequence[Campaign]) -> Html:
    """What is odd about the rounds, why cases got no more of them, and rounds that did not complete."""

    def shown(series: Campaign) -> list[Displayed]:
        notes = [
            f"{result.case.case_id}: {sentence}"
            for result in _in_order(series)
            for sentence in (*flags(result.rounds), *([result.ended_because] if result.ended_because else []))
        ]
        odd = bullets(notes) if notes else paragraph("Nothing is odd about the times of the rounds.")
        by_older_rule = any("interval of the median from" in (result.ended_because or "") for result in series.results)
        return [
            odd,
            *([paragraph(OLDER_RULE)] if by_older_rule else []),
            *([paragraph(str(slowed))] if (slowed := series.slowed_cores) else []),
            series_tables.failures(series.failures, label=f"Rounds of {named(series)} that did not complete"),
        ]

    return _of_every_set(parts, shown)


def _in_order(series: Campaign) -> list[CaseResult]:
    """As its tables have them: 2048 before 16384."""
    by_case = {result.case.case_id: result for result in series.results}
    return [by_case[row.case_id] for row in series.rows]


def _over_ranks(series: Campaign, chart: Callable[[Campaign], Displayed]) -> Displayed:
    """Where there is something to show over them: a set may vary the environments alone, as a search for capacity."""
    if series.is_sweep:
        return paragraph("Different numbers of environments on one number of ranks: no speed-up to show.")
    if not series.pairs_without_scaling:
        return chart(series)
    return together(
        [
            paragraph("The same ranks on one node and on several: no speed-up to show."),
            pair_tables.more_on_nodes(),
        ]
    )


def _of_every_set(parts: Sequence[Campaign], show: Callable[[Campaign], list[Displayed]]) -> Html:
    shown: list[Displayed] = []
    for series in parts:
        if _has_headings(parts, series):
            shown.append(heading(series.title, depth=4))
        shown += show(series)
    return together(shown)


def _has_headings(parts: Sequence[Campaign], series: Campaign) -> bool:
    """Whether what is shown of a set stands below its title."""
    return len(parts) > 1 or series.is_contributed
