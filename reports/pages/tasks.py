"""A task's page: how it scales, what fills a GPU, where the time goes, how it learns; then one table. Pure."""

import base64
import html
import json
import statistics
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reports.analysis.curves import task_name
from reports.analysis.time_split import PARTS
from reports.display.addresses import page_of_task
from reports.display.calculator import calculator
from reports.display.charts.curves import curves
from reports.display.charts.drawing import Point, Texts
from reports.display.charts.parts import parts
from reports.display.charts.speedup import speedup
from reports.display.charts.sweep import sweep
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    bullets,
    count,
    estimated,
    fold,
    heading,
    html_table,
    measured,
    paragraph,
    percent,
    together,
)
from reports.display.page import read_text
from reports.display.series_tables import STACK_NAMES, environments_text, ranks_text
from reports.figures.compare import Row
from reports.figures.lines import Line, estimate, figure, over_environments, over_gpus, rows_of, tasks
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.version import ResultSet, Version
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.records.videos import Video, poster_path, video_path
from suite.schema.record import Case, RunRecord
from suite.statistics.intervals import Estimate
from suite.statistics.speed import HARDLY_SLOPE, SCALES_EFFICIENCY, Side, side_of

FOLDER: Final = ROOT / "book" / "pictures"
OTHER_WINDOWS: Final = (95, 50)  # % of the iterations; figures have these too
MAX_LINES: Final = 6  # of a chart
MAX_BARS: Final = 4  # curves whose fewest and most GPUs have a bar, and a curve of rewards
MAX_SENTENCES: Final = 4  # of an answer, of the curves with the most GPUs
# Blues belong to the rollout, oranges to learning; light and dark alternate, so that neighbours differ without colour.
SHADES: Final = ("#0B4F7D", "#0072B2", "#4FA3D8", "#9BCBEA", "#C9CED6", "#F2A35E", "#B94700", "#7A2E00")
COLOURS: Final = dict(zip(PARTS.values(), SHADES, strict=True))


def texts(version: Version) -> Mapping[str, str]:
    """One page for each task."""
    template = string.Template(read_text("tasks"))
    return {page_of_task(task): template.substitute(title=task.replace('"', "'")) for task in tasks(version)}


def opening(version: Version, task: str) -> Html:
    """Say how the task scales, and what it is."""
    lines = sorted(over_gpus(version, task), key=lambda line: line.rows[-1]["gpus"], reverse=True)
    said = [sentence for line in lines[:MAX_SENTENCES] if (sentence := _kept(line))]
    trained = f"{task} ran on one number of GPUs, so nothing is known of how it scales."
    scales = " ".join(said) or (trained if rows_of(version, task) else f"{task} was not trained: only parts of it ran.")
    return together([answer_of_page(scales), picture(task), *map(paragraph, _what_it_is(version, task))])


def _kept(line: Line) -> str:
    last = line.rows[-1]
    kept = line.figure(last, "share_kept")
    if kept is None:
        return ""
    span = f"{percent(kept['low'])} to {percent(kept['high'])}; " if kept["low"] is not None else ""
    side = side_of(estimate(kept))
    status = f"within noise of {SCALES_EFFICIENCY:.0%}" if side == "within noise" else side
    return (
        f"{line.label}: {counted(last['gpus'], 'GPU')} keep {percent(kept['value'])} of the ideal speed"
        f" ({span}{status}{_by_other_windows(line, side)}; {line.where})."
    )


def _by_other_windows(line: Line, side: Side) -> str:
    """What another share of the iterations says, where it says something else."""
    sides = {
        share: side_of(estimate(own))
        for share in OTHER_WINDOWS
        if (own := line.figure(line.rows[-1], f"share_kept_{share}")) and own["low"] is not None
    }
    return "".join(
        f", {other} by the last {share} % of the iterations" for share, other in sides.items() if other != side
    )


def picture(task: str, *, folder: Path = FOLDER) -> Html:
    """Show the picture of a task, by its plain name, with how it was drawn; nothing if there is none."""
    name = page_of_task(task).removeprefix("task-")
    known: dict[str, Any] = json.loads((folder / "pictures.json").read_text(encoding="utf-8"))
    if name not in known:
        return Html(markup="", text="")
    drawn = known[name]
    view, versions = drawn["view"], drawn["versions"]
    caption = (
        f"{task} after {view['steps']} steps of random actions, drawn by Newton's renderer on the CPU (Newton"
        f" {versions['newton']}, Isaac Lab {versions['isaaclab']}, offline assets, {drawn['drawn']}). SHA-256"
        f" {drawn['sha256'][:12]}."
    )
    data = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    return Html(
        markup=(
            f'<figure class="task-picture"><img src="data:image/png;base64,{data}" width="{view["width_px"]}"'
            f' height="{view["height_px"]}" alt="The simulation of {html.escape(task)}, one environment">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        ),
        text=caption,
    )


def _what_it_is(version: Version, task: str) -> Iterator[str]:
    """Observations, actions, rewards and steps, as a run stored them."""
    records = (
        record
        for one in version.scaling
        for result in one.campaign.results
        for record in result.completed
        if record.workload and task_name(record.case.task) == task
    )
    record = next(records, None)
    if record:
        yield _facts(record)


def _facts(record: RunRecord) -> str:
    known = record.workload or {}
    sizes = {name.partition(".")[2]: value for name, value in known.items() if name.startswith("observation_size.")}
    observed = [f"{value} numbers ({name})" for name, value in sizes.items()]
    said = [f"The policy observes {' and '.join(observed)}"] if observed else []
    if "action_size" in known:
        said.append(f"it acts with {counted(int(str(known['action_size'])), 'number')}")
    step_s = known.get("physics_dt_s")
    if isinstance(step_s, float) and "decimation" in known:
        said.append(f"a physics step is {1000 * step_s:.3g} ms, and an action lasts {known['decimation']} of them")
    return f"{record.case.task}. {'; '.join(said)}."


# --- charts --------------------------------------------------------------------------------------------------------


def charts(version: Version, task: str) -> Html:
    """Show the four charts that have data, each below the question that it answers, and the calculator."""
    scaling, sizes = over_gpus(version, task)[:MAX_LINES], over_environments(version, task)[:MAX_LINES]
    shown: list[Displayed] = []
    if scaling:
        shown += [heading("How it scales", depth=2, anchor="scaling"), _share_kept(version, task, scaling)]
        found = [line for line in version.lines if line.task == task]
        shown += [calculator(found)] if found else []
    if sizes:
        shown += [heading("What fills a GPU", depth=2, anchor="environments"), _sizes(version, task, sizes)]
    bars = _parts_of(scaling or sizes)
    if bars:
        texts = _texts(version, scaling or sizes, f"Where an iteration of {task} goes", "Time of an iteration in s")
        shown += [heading("Where the time goes", depth=2, anchor="parts")]
        drawn = parts(bars, texts, COLOURS, unit="s")
        shown += [
            make_figure(drawn, figure_id=f"{page_of_task(task)}-parts", data=_of_points(bars, "parts"), caption="")
        ]
    learned = _rewards(scaling or sizes)
    if learned:
        texts = _texts(version, scaling or sizes, f"What {task} learns", "Million frames", "Reward")
        drawn = curves(learned, texts)
        shown += [heading("How it learns", depth=2, anchor="learning")]
        shown += [make_figure(drawn, figure_id=f"{page_of_task(task)}-learning", data=_ends(learned), caption="")]
    return together(shown)


def _texts(version: Version, lines: Sequence[Line], title: str, x: str, y: str = "") -> Texts:
    return Texts(title=title, source=source_line(version.name, (line.where for line in lines)), x=x, y=y)


def _share_kept(version: Version, task: str, lines: Sequence[Line]) -> Displayed:
    points = []
    for line in lines:
        points.append(Point(label=line.label, x=line.base["gpus"], y=1.0))
        known = ((row["gpus"], line.figure(row, "share_kept")) for row in line.rows[1:])
        points += [_point(line.label, gpus, estimate(kept)) for gpus, kept in known if kept]
    texts = _texts(version, lines, f"Share of the ideal speed that {task} keeps", "GPUs", "Share of ideal")
    baselines = {line.base["gpus"] for line in lines}
    drawn = speedup(points, texts, baselines=baselines, is_share=True)
    return make_figure(drawn, figure_id=f"{page_of_task(task)}-share", data=_of_points(points, "share"), caption="")


def _sizes(version: Version, task: str, lines: Sequence[Line]) -> Displayed:
    points = []
    for line in lines:
        known = ((row["environments_per_gpu"], line.figure(row, "frames_per_s")) for row in line.rows)
        points += [_point(line.label, number, estimate(fps)) for number, fps in known if fps]
    texts = _texts(version, lines, f"Frames of {task} over environments on a GPU", "Environments", "Frames/s")
    drawn = sweep(points, texts)
    return make_figure(
        drawn, figure_id=f"{page_of_task(task)}-environments", data=_of_points(points, "environments"), caption=""
    )


def _point(label: str, x: int, own: Estimate) -> Point:
    return Point(label=label, x=x, y=own.value, interval=own.interval, is_sure=own.interval is not None)


def _parts_of(lines: Sequence[Line]) -> list[Point]:
    points = []
    for line in lines[:MAX_BARS]:
        for row in (line.rows[0], line.rows[-1]):
            time = line.figure(row, "iteration_s")
            shares = {part: line.figure(row, f"{name}_share") for name, part in PARTS.items()}
            label = f"{line.label}, {counted(row['gpus'], 'GPU')}, {environments_text(row['environments_per_gpu'])}"
            if time and shares["learning"]:
                known = {part: share["value"] for part, share in shares.items() if share}
                points += [Point(label=label, kind=part, x=time["value"] * share) for part, share in known.items()]
    return points


def _rewards(lines: Sequence[Line]) -> list[Point]:
    """The median reward of the runs of the first and the last configuration of each line, over frames."""
    points = []
    for line in lines[:MAX_BARS]:
        for row in (line.rows[0], line.rows[-1]):
            runs = runs_of(line.version).rewards(row).values()
            label = f"{line.label}, {counted(row['gpus'], 'GPU')}"
            for iteration, rewards in enumerate(zip(*runs, strict=False)):
                known = [reward for reward in rewards if reward is not None]
                frames = (iteration + 1) * row["frames_per_iteration"] / 1e6
                points += [Point(label=label, x=frames, y=statistics.median(known))] if known else []
    return points


def _of_points(points: Sequence[Point], what: str) -> Html:
    rows = [
        [point.label, *([point.kind] if point.kind else [f"{point.x:,.0f}"]), _value(point), _span(point)]
        for point in points
    ]
    headings = ["Line", "Part" if points[0].kind else "Number", "Value", "95 % interval"]
    return html_table(headings, rows, label=f"Values of the chart: {what}")


def _value(point: Point) -> str:
    return f"{point.x if point.kind else point.y:,.3g}"


def _span(point: Point) -> str:
    return f"{point.interval[0]:,.3g} to {point.interval[1]:,.3g}" if point.interval else "n/a"


def _ends(points: Sequence[Point]) -> Html:
    ends = {point.label: point for point in points}
    rows = [[label, f"{point.x:,.1f}", f"{point.y:.3g}"] for label, point in ends.items()]
    return html_table(["Line", "Million frames", "Reward at the end"], rows, label="Ends of the curves")


# --- table, core, videos -------------------------------------------------------------------------------------------


HEADINGS: Final = (
    "Configuration", "Library", "GPUs", "Environments per GPU", "Frames/s", "Share of ideal", "How sure", "Runs",
)  # fmt: skip


def table(version: Version, task: str) -> Html:
    """Show every configuration of the task as shipped."""
    every = sorted(rows_of(version, task), key=lambda row: (row["library"], row["size"], row["gpus"], row["set"]))
    cells = [own for row in every if (own := _cells(version, row))]
    shown = html_table(
        HEADINGS, cells, label=f"Configurations of {task}", num_text_columns=2, text_headings=["How sure"]
    )
    return fold(f"All {len(cells)} configurations of {task} as shipped", [shown]) if cells else shown


def _cells(version: Version, row: Row) -> list[str]:
    """Return the cells of a configuration; empty if no run completed."""
    fps, kept = figure(version, row, "frames_per_s"), figure(version, row, "share_kept")
    if fps is None:
        return []
    share, status = (estimated(estimate(kept), percent), kept["status"]) if kept else (MISSING, MISSING)
    sizes = str(row["gpus"]), f"{row['environments_per_gpu']:,}"
    name = f"{row['set']}: {row['configuration']}"
    return [name, row["library"], *sizes, estimated(estimate(fps), count), share, status, str(fps["runs"])]


def cpu_core(version: Version, task: str) -> Html:
    """Say how far training on one GPU goes with its CPU core, for each library, physics and size that machines say."""
    figures, said = rows_by_id(version), {}
    for row in rows_of(version, task):
        slope = figures.get(f"{row['one_gpu_training']}/machines_slope")
        if slope is not None:
            said[slope["id"]] = of_core(row, slope)
    above = heading("How far it goes with the CPU core", depth=2, anchor="cpu-core")
    return together([above, bullets(said.values())] if said else [])


def of_core(row: Row, slope: Mapping[str, Any]) -> str:
    """What the slope says of a training and its core."""
    with_what = f"{row['library']}, {STACK_NAMES[row['physics']]}, {environments_text(row['environments_per_gpu'])}"
    word = "hardly goes" if slope["high"] < HARDLY_SLOPE else "goes" if slope["low"] > 0 else "may go"
    return f"{with_what}: an iteration {word} with its CPU core, slope {measured(slope)}; 1 is in proportion."


def videos(version: Version, task: str) -> Html:
    """Show the first video, and the others in a fold; nothing if the task has none."""
    found = [_figure(one, case, video) for one, case, video in _of_task(version, task)]
    if not found:
        return Html(markup="", text="")
    first, *others = found
    more = [fold(counted(len(others), "more video"), others)] if others else []
    return together([heading("What a training looks like", depth=2, anchor="videos"), first, *more])


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
