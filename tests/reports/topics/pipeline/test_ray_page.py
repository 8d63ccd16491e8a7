"""TorchRL's collector over Ray beside the one in the same process."""

from dataclasses import replace
from statistics import geometric_mean

import pytest

from reports.topics.pipeline import ray_page
from reports.topics.pipeline.ray_page import over_ray
from suite.statistics.reduce import round_time_s
from tests.fixtures.results.version_2026_12 import set_of, version


def test_the_collector_over_ray_is_compared_with_the_same_one_here() -> None:
    results = set_of("h200-torchrl").campaign.results
    (found,) = over_ray(results)
    here = next(one for one in results if one.case.series == "control-cartpole-collection")
    assert found.over_here is not None
    assert found.fps is not None
    assert found.here_fps is not None
    assert found.over_here.value == pytest.approx(found.fps.value / found.here_fps.value)
    frames = here.case.frames_per_iteration
    assert found.here_fps.value == pytest.approx(frames / geometric_mean(map(round_time_s, here.completed)))
    assert 0.5 < (found.collecting or 0) < 1
    assert found.case.case_id in ray_page.sets(version()).text


def test_the_answer_speaks_of_each_task_once_by_its_case_with_the_most_runs() -> None:
    (found,) = over_ray(set_of("h200-torchrl").campaign.results)
    (once,) = over_ray(set_of("h200-torchrl-camera-ray").campaign.results)
    (often,) = over_ray(set_of("h200-torchrl-camera-ray-3").campaign.results)
    assert (len(once.result.completed), len(often.result.completed)) == (1, 3)
    assert found.over_here is not None
    assert once.over_here is not None
    assert often.over_here is not None
    begin = (
        f"Over Ray TorchRL's collector makes {found.over_here.value:.2f} times the frames (Cartpole, too few runs), and"
    )
    end = "times the frames (Cartpole with camera, too few runs) of the one in the same process."
    assert ray_page.answer(version()).text == f"{begin} {often.over_here.value:.3f} {end}"
    first = [one for one in version().sets if one.name != "h200-torchrl-camera-ray-3"]
    assert ray_page.answer(replace(version(), sets=tuple(first))).text == f"{begin} {once.over_here.value:#.2g} {end}"


def test_alone_it_has_nothing_to_be_compared_with() -> None:
    results = [one for one in set_of("h200-torchrl").campaign.results if one.case.workload == "collection_ray"]
    (found,) = over_ray(results)
    assert (found.here_fps, found.over_here) == (None, None)
    (nothing,) = over_ray([replace(results[0], rounds=())])
    assert (nothing.fps, nothing.collecting) == (None, None)
    over = {one.name for one in version().scaling if over_ray(one.campaign.results)}
    without = replace(version(), sets=tuple(one for one in version().sets if one.name not in over))
    assert ray_page.has_ray(version())
    assert not ray_page.has_ray(without)
    assert ray_page.answer(without).text.startswith("No collector completed both")
