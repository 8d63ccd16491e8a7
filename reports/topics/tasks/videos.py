"""The videos of a task's trainings, which `bench --video` filmed: those whose files are as they were stored."""

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reports.analysis.curves import task_name
from reports.display.html import Html, fold, heading, together
from reports.display.series_tables import ranks_text
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted
from suite.records.videos import Video, poster_path, video_path
from suite.schema.record import Case

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
