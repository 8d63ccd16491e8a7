"""Pictures of tasks on their pages: those in git are as `nox -s pictures` wrote them."""

import json
from pathlib import Path

from reports.display.addresses import page_of_task
from reports.topics.tasks import overview
from reports.topics.tasks.overview import FOLDER, picture
from suite.install.pins import sha256
from suite.install.task_pictures import LIST, VIEWS
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.committed_results import committed_version

KNOWN = json.loads((FOLDER / LIST).read_text(encoding="utf-8"))


def test_each_picture_in_git_is_the_one_that_its_list_names() -> None:
    assert set(KNOWN) == set(VIEWS) == {path.stem for path in FOLDER.glob("*.png")}
    for name, drawn in KNOWN.items():
        assert drawn["sha256"] == sha256(FOLDER / f"{name}.png")
        view = VIEWS[name]
        assert drawn["view"]["task"] == view.task
        assert (drawn["view"]["seed"], drawn["view"]["steps"]) == (view.seed, view.steps)
        assert tuple(drawn["view"]["eye"]) == view.eye


def test_every_published_task_has_its_picture_with_how_it_was_drawn() -> None:
    versions = (committed_version(), version_2026_12.version())
    of_tasks = {task: version for version in versions for task in overview.tasks(version)}
    assert {page_of_task(task).removeprefix("task-") for task in of_tasks} == set(KNOWN)
    for task, version in of_tasks.items():
        shown = picture(task)
        assert f"{task} after " in shown.text
        assert KNOWN[page_of_task(task).removeprefix("task-")]["sha256"][:12] in shown.text
        assert f'alt="The simulation of {task}, one environment"' in shown.markup
        assert shown.markup in overview.opening(version, task).markup


def test_a_task_without_a_picture_shows_none(tmp_path: Path) -> None:
    assert picture("My Robot").markup == ""
    (tmp_path / LIST).write_text("{}")
    assert picture("Ant", folder=tmp_path).markup == ""
