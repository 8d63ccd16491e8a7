"""A task's page: how it scales, what fills a GPU, where the time goes, how it learns. Pure."""

import base64
import html
import json
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from reports.data.samples import PARTS
from reports.data.words import STACK_NAMES, environments_text, page_of_task, ranks_text, size_of_training, task_name
from reports.display.charts.curves import curves
from reports.display.charts.drawing import Point, Texts
from reports.display.charts.parts import parts
from reports.display.charts.speedup import speedup
from reports.display.charts.sweep import sweep
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    Html,
    answer_of_page,
    bullets,
    fold,
    heading,
    html_table,
    measured,
    paragraph,
    together,
)
from reports.display.page import read_text
from reports.figures.compare import Row, processes_of
from reports.figures.lines import Figure, Line, estimate, figure, over_environments, over_gpus, rows_of, tasks
from reports.figures.tables import rows_by_id, runs_of
from reports.pages.rewards import (
    AGREEMENT,
    LEARNED,
    REWARD,
    agreement,
    curve,
    filled_or_added,
    learned_at,
    point,
    sooner,
    time_to_reward,
)
from reports.sets.version import ResultSet, Version
from suite.files.paths import ROOT
from suite.files.wording import counted, joined
from suite.records.folders import Video, poster_path, video_path
from suite.schema.record import Case, RunRecord
from suite.statistics.speed import SCALES_EFFICIENCY, Side, core_sentence, side_of, twice_the_core

FOLDER: Final = ROOT / "book" / "pictures"
OTHER_WINDOWS: Final = (95, 50)  # % of the iterations; figures have these too
MAX_LINES: Final = 6  # of a chart over GPUs, or over environments
MAX_BARS: Final = 3  # lines whose fewest and most GPUs have a bar, and a curve of rewards
MAX_SENTENCES: Final = 3  # of an answer, of the lines with the most GPUs
# Blues belong to the rollout, oranges to learning; light and dark alternate, so that neighbours differ without colour.
SHADES: Final = ("#0B4F7D", "#0072B2", "#4FA3D8", "#9BCBEA", "#C9CED6", "#F2A35E", "#B94700", "#7A2E00")
COLOURS: Final = dict(zip(PARTS.values(), SHADES, strict=True))


def texts(version: Version) -> Mapping[str, str]:
    """One page for each task that was trained."""
    template = string.Template(read_text("tasks"))
    return {page_of_task(task): template.substitute(title=task.replace('"', "'")) for task in tasks(version)}


def opening(version: Version, task: str) -> Html:
    """Say how the task scales, and what it is."""
    lines = sorted(over_gpus(version, task), key=lambda line: line.rows[-1]["gpus"], reverse=True)
    sentences = [sentence for line in lines[:MAX_SENTENCES] if (sentence := _kept(line))]
    answer = " ".join(sentences) or _on_one_number(version, task)
    return together([answer_of_page(answer), picture(task), *map(paragraph, _what_it_is(version, task))])


def _kept(line: Line) -> str:
    last = line.rows[-1]
    kept = line.figure(last, "share_kept")
    if kept is None:
        return ""
    side = side_of(estimate(kept))
    status = f"within noise of {100 * SCALES_EFFICIENCY:.0f} %" if side == "within noise" else side
    return (
        f"{line.label}: {counted(last['gpus'], 'GPU')} keep {measured(kept)} of the ideal speed"
        f" ({status}{_by_other_windows(line, side)}; {line.where})."
    )


def _by_other_windows(line: Line, side: Side) -> str:
    """What another share of the iterations says, where it says something else."""
    sides = {
        share: side_of(estimate(own))
        for share in OTHER_WINDOWS
        if (own := line.figure(line.rows[-1], f"share_kept_{share}")) and own["low"] is not None
    }
    return "".join(
        f"; over the last {share} % of the iterations {other}" for share, other in sides.items() if other != side
    )


def _on_one_number(version: Version, task: str) -> str:
    """The most frames per second, where the task ran on one number of GPUs alone."""
    known = [(row, fps) for row in rows_of(version, task) if (fps := figure(version, row, "frames_per_s"))]
    if not known:
        return f"{task} has no speed as shipped. Explore has what ran."
    row, fps = max(known, key=lambda item: float(item[1]["value"]))
    where = "one GPU" if row["gpus"] == 1 else f"each of {row['gpus']} GPUs"
    size = environments_text(row["environments_per_gpu"])
    return (
        f"{row['library']} makes the most frames per second with {size} on {where}:"
        f" {measured(fps)}. It ran on one number of GPUs, so nothing is known of how it scales."
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
        for result_set in version.scaling
        for result in result_set.campaign.results
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
    sentences = [f"The policy observes {' and '.join(observed)}"] if observed else []
    if "action_size" in known:
        sentences.append(f"it acts with {counted(int(str(known['action_size'])), 'number')}")
    step_s = known.get("physics_dt_s")
    if isinstance(step_s, float) and "decimation" in known:
        sentences.append(f"a physics step is {1000 * step_s:.3g} ms, and an action lasts {known['decimation']} of them")
    return f"{record.case.task}. {'; '.join(sentences)}."


# --- charts --------------------------------------------------------------------------------------------------------


def charts(version: Version, task: str) -> Html:
    """Show the four charts that have data, each below the question that it answers."""
    scaling, sizes = over_gpus(version, task)[:MAX_LINES], over_environments(version, task)[:MAX_LINES]
    lines = (scaling or sizes or over_environments(version, task, least=1))[:MAX_BARS]
    answers: Sequence[tuple[str, str, Sequence[Html]]] = (
        ("How it scales", "scaling", _shares(version, task, scaling)),
        ("What fills a GPU", "environments", _sizes(version, task, sizes)),
        ("Where the time goes", "parts", _parts(version, task, lines)),
        ("How it learns", "learning", _learning(version, task, lines)),
    )
    return together(
        part for title, anchor, shown in answers if shown for part in (heading(title, depth=2, anchor=anchor), *shown)
    )


def _drawn(task: str, name: str, chart: Mapping[str, Any], data: Html) -> Html:
    return make_figure(chart, figure_id=f"{page_of_task(task)}-{name}", data=data)


def _texts(version: Version, lines: Sequence[Line], title: str, x: str, y: str = "") -> Texts:
    return Texts(title=title, source=source_line(version.name, (line.where for line in lines)), x=x, y=y)


def _shares(version: Version, task: str, lines: Sequence[Line]) -> list[Html]:
    """The share of the ideal speed that each number of GPUs keeps."""
    known = [
        (line, row["gpus"], kept, "") for line in lines for row in line.rows if (kept := line.figure(row, "share_kept"))
    ]
    return _over_gpus(version, task, known, "share_kept", f"Share of the ideal speed that {task} keeps")


def _sooner(version: Version, task: str, lines: Sequence[Line]) -> list[Html]:
    """How many times as soon the reward comes on more GPUs, and on one that is filled."""
    known = [(line, gpus, own, kind) for line in lines for gpus, (own, kind) in sorted(sooner(line).items()) if own]
    note = "Dashed: predicted, as if each doubling of GPUs brought what the last one did. Hollow: no interval."
    if any(line.rows[-1]["gpus"] == 1 for line, *_ in known):
        note += " A line of one GPU: with the environments of so many."
    return _over_gpus(version, task, known, "sooner", f"How many times as soon {task} has a reward", note)


def _over_gpus(
    version: Version, task: str, known: Sequence[tuple[Line, int, Figure, str]], name: str, title: str, note: str = ""
) -> list[Html]:
    """The figure ``name`` of lines over GPUs, each with its kind."""
    if not known:
        return []
    y = {"share_kept": "Share of ideal", "sooner": "Times as soon"}[name]
    labels = {line.label: line for line, *_ in known}
    points = [Point(label=label, x=line.base["gpus"], y=1.0) for label, line in labels.items()]
    points += [point(line.label, gpus, own, kind=kind) for line, gpus, own, kind in known]
    points.sort(key=lambda own: ([*labels].index(own.label), own.x))
    texts = replace(_texts(version, [*labels.values()], title, "GPUs", y), note=note)
    filled = {label for label, line in labels.items() if line.rows[-1]["gpus"] == 1}
    cells = [
        [line.label, "environments of " * (line.label in filled) + str(gpus), measured(own), kind or own["status"]]
        for line, gpus, own, kind in known
    ]
    data = html_table(["Training", "GPUs", name, "How sure"], cells, label=title)
    bases = {line.base["gpus"] for line in labels.values()}
    chart = speedup(points, texts, baselines=bases, is_share=name == "share_kept")
    return [_drawn(task, name.partition("_")[0], chart, data)]


def _sizes(version: Version, task: str, lines: Sequence[Line]) -> list[Html]:
    """Frames per second over environments on a GPU."""
    if not lines:
        return []
    known = [(line, row, fps) for line in lines for row in line.rows if (fps := line.figure(row, "frames_per_s"))]
    points = [point(line.label, row["environments_per_gpu"], fps) for line, row, fps in known]
    texts = _texts(version, lines, f"Frames of {task} over environments on a GPU", "Environments", "Frames/s")
    data = html_table(
        ["Training", "Environments", "frames_per_s"],
        [[line.label, f"{row['environments_per_gpu']:,}", measured(fps)] for line, row, fps in known],
        label="Frames per second over environments",
    )
    return [_drawn(task, "environments", sweep(points, texts), data)]


def _ends(lines: Sequence[Line]) -> Iterator[tuple[str, Line, Row]]:
    """Yield the first and the last configuration of each line, named by what varies."""
    for line in lines:
        for row in line.rows[:: max(1, len(line.rows) - 1)]:
            is_over_gpus = line.rows[-1]["gpus"] > line.base["gpus"]
            gpus, size = counted(row["gpus"], "GPU"), environments_text(row["environments_per_gpu"])
            yield f"{line.label}, {gpus if is_over_gpus else size}", line, row


def _parts(version: Version, task: str, lines: Sequence[Line]) -> list[Html]:
    """What an iteration consists of, on the fewest and the most GPUs."""
    points, cells = [], []
    for label, line, row in _ends(lines):
        time = line.figure(row, "iteration_s")
        shares = {part: line.figure(row, f"{name}_share") for name, part in PARTS.items()}
        if time and shares["learning"]:
            known = {part: share["value"] for part, share in shares.items() if share}
            points += [Point(label=label, kind=part, x=time["value"] * share) for part, share in known.items()]
            cells.append([label, measured(time, has_interval=False), *map(measured, shares.values())])
    if not points:
        return []
    texts = _texts(version, lines, f"Where an iteration of {task} goes", "Time of an iteration in s")
    data = html_table(["Training", "iteration_s", *PARTS.values()], cells, label="Parts of an iteration")
    drawn = _drawn(task, "parts", parts(points, texts, COLOURS, unit="s"), data)
    return [drawn, bullets(_cores(version, task))]


def _cores(version: Version, task: str) -> Iterator[str]:
    """How far each training on one GPU that machines ran waits for its CPU core."""
    rows = {row["one_gpu_training"]: row for row in rows_of(version, task) if row["one_gpu_training"]}
    for training, row in rows.items():
        slope = rows_by_id(version).get(f"{training}/machines_slope")
        if slope and slope["low"] is not None:
            name = f"{row['library']}, {STACK_NAMES[row['physics']]}, {size_of_training(row)}"
            yield f"{name}: {core_sentence(slope['low'], slope['high'], measured(slope, twice_the_core))}"


def _learning(version: Version, task: str, others: Sequence[Line]) -> list[Html]:
    """Rewards over frames, the median of the runs, and when they come. ``others``: if none ran on several GPUs."""
    known = sorted(over_gpus(version, task, of_rewards=True), key=lambda line: not line.learned)
    scaling, points, places = known[:MAX_LINES], [], []
    lines = scaling[:MAX_BARS] or others
    for label, line, row in _ends(lines):
        drawn = list(curve(line.version, row, label))
        points += drawn
        places += sorted(learned_at(line, row)) or [line.where] if drawn else []
    if not points:
        return []
    note = "Mean over an episode of full length; median of five iterations where speed was measured too."
    source = source_line(version.name, places)
    texts = Texts(title=f"What {task} learns", source=source, x="Million frames", y="Reward", note=note)
    headings = (
        "Training", "Processes", "Environments", "Million frames", "last_reward", "Least", "Most", "learned_success",
    )  # fmt: skip
    filled = [own for own in over_environments(version, task, of_rewards=True) if own.learned and own.base["gpus"] == 1]
    learned = [*lines, *(replace(own, rows=tuple(own.learned)) for own in filled)]
    data = html_table(headings, (row for line in learned for row in _at_the_end(line)), label="Rewards at the end")
    return [_drawn(task, "learning", curves(points, texts), data), *_times(version, task, scaling, filled)]


def _at_the_end(line: Line) -> Iterator[list[str]]:
    """What each configuration learned, and more processes on one GPU than GPUs ran."""
    runs = runs_of(line.version)
    more = runs.learned_on_more(line.rows[-1]) if line.rows[-1]["gpus"] > line.base["gpus"] else ()
    for row in (*line.rows, *more):
        of, start = (line.base, f"{processes_of(row)}/") if row in more else (row, "")
        learned, *ends = (line.figure(of, f"{start}learned_reward{end}") for end in ("", "_least", "_most"))
        own = (learned and runs.learned(row)) or row
        if reward := learned or line.figure(of, f"{start}last_reward"):
            frames = own["environments"] * own["steps"] * own["iterations"] / 1e6
            size, success = f"{row['environments']:,}", line.figure(of, f"{start}learned_success")
            yield [line.label, str(processes_of(row)), size, f"{frames:,.0f}", *map(measured, (reward, *ends, success))]


def _times(version: Version, task: str, scaling: Sequence[Line], filled: Sequence[Line]) -> Iterator[Html]:
    """Yield when the reward comes on more GPUs, and on one with more environments."""
    every = [*scaling, *filled]
    rewards = {line.label: own["value"] for line in every if (own := line.figure(line.base, "reward_mean_to_reach"))}
    best = max((rewards[line.label] for line in scaling if line.label in rewards), default=0.0)
    # A training that ended below half of the best reward had not learned the task: its time says nothing.
    known = [line for line in scaling if rewards.get(line.label, best) >= best - abs(best) / 2]
    times = [time for line in known if (time := time_to_reward(line))]
    times += [text for own in filled for line in scaling if (text := filled_or_added(own, line))]
    measured_at = {line.label: learned_at(line, *line.rows) for line in every if line.label in rewards}
    learned = {label: places for label, places in measured_at.items() if places}
    if learned:
        yield paragraph(f"{'; '.join(learned)}: {LEARNED} {joined(sorted(set.union(*learned.values())))}.")
    if checked := [text for line in scaling if (text := agreement(line))]:
        yield paragraph(f"{AGREEMENT} {'; '.join(checked)}.")
    if times or filled:
        yield from (*_sooner(version, task, every), bullets(times), paragraph(REWARD))


# --- videos --------------------------------------------------------------------------------------------------------


def videos(version: Version, task: str) -> Html:
    """Show the first video, and the others in a fold; nothing if the task has none."""
    figures = [
        _figure(result_set, result.case, video)
        for result_set in version.scaling
        for result in result_set.campaign.results
        if (video := result_set.videos.get(result.case.case_id)) and task_name(result.case.task) == task
    ]
    if not figures:
        return Html(markup="", text="")
    first, *others = figures
    more = [fold(counted(len(others), "more video"), others)] if others else []
    return together([heading("What a training looks like", depth=2, anchor="videos"), first, *more])


def _figure(result_set: ResultSet, case: Case, video: Video) -> Html:
    task, seen = html.escape(task_name(case.task)), counted(video.environments, "environment")
    place = f" of {result_set.title}" if result_set.title else ""
    caption = (
        f"The last {video.duration_s:.1f} s of a training of {case.case_id}{place}, in simulated time: {seen} of"
        f" {case.num_envs_global:,}, with {case.rl_library} on {ranks_text(case)}. Filmed in an uncounted run,"
        f" by Newton's renderer (Newton {video.versions.get('newton', 'unknown')}). SHA-256 {video.sha256[:12]}."
    )
    file, poster = (_address(result_set, path(result_set.folder, case.case_id)) for path in (video_path, poster_path))
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


def _address(result_set: ResultSet, path: Path) -> str:
    """Where the site has a file of a set."""
    return html.escape(f"data/{result_set.name or 'results'}/{path.relative_to(result_set.folder).as_posix()}")
