"""Which steps of a training are filmed."""

import itertools

import pytest

from tasks.film.schedule import schedule


def filmed(*, steps: int, step_s: float) -> list[int]:
    found = schedule(steps=steps, step_s=step_s)
    return [step for step in range(steps + 10) if found.is_filmed(step)]


def test_the_last_five_seconds_are_filmed_at_thirty_frames_a_second() -> None:
    steps = filmed(steps=1600, step_s=1 / 60)
    assert len(steps) == 150
    assert (steps[0], steps[-1]) == (1600 - 300 + 1, 1599)
    assert {later - step for step, later in itertools.pairwise(steps)} == {2}
    assert schedule(steps=1600, step_s=1 / 60).frame_s == pytest.approx(1 / 30)


def test_a_short_training_is_filmed_from_its_first_step() -> None:
    assert filmed(steps=48, step_s=1 / 60) == list(range(1, 48, 2))


def test_a_step_that_lasts_longer_than_a_frame_is_one_frame() -> None:
    assert filmed(steps=400, step_s=0.1) == list(range(350, 400))
    assert filmed(steps=3, step_s=20.0) == [2]
