"""What the notes of version 2026.12 say of the eleventh single H200 is what results in git say."""

import pytest

from reports.topics.shared_gpu.both_ways import both_ways
from suite.statistics.intervals import Estimate
from tests.fixtures.results.version_2026_12 import NOTES, ends, runs_of, set_of, slowed_of, times, version

ANT, CARTPOLE = "h200-shared-ant", "h200-shared-cartpole"
WAYS = (ANT, f"{ANT}-mps", CARTPOLE, f"{CARTPOLE}-mps")


def in_task(found: Estimate | None, task: str) -> str:
    assert found is not None
    return times(found).replace("times", f"times in {task}")


def test_trainings_through_mps_and_without_it() -> None:
    found = {(each.name, each.trainings): each for each in both_ways(version())}
    assert {name for name, _ in found} == {ANT, CARTPOLE}
    four, ant_four, two, ant_two = (found[name, number].over_without for number in (4, 2) for name in (CARTPOLE, ANT))
    assert four is not None
    assert f"more frames: {four.value:.2f} times those without it in Cartpole** ({ends(four)}), and" in NOTES
    assert f", and {in_task(ant_four, 'Ant')}. With two it is open" in NOTES
    assert f": {in_task(two, 'Cartpole')} and {in_task(ant_two, 'Ant')}." in NOTES
    assert all(each and each.interval and each.interval[0] > 1 for each in (four, ant_four))
    assert all(each and each.interval and each.interval[0] < 1 < each.interval[1] for each in (two, ant_two))
    alone, ant_alone = (found[name, 4].without.over_one for name in (CARTPOLE, ANT))
    assert alone is not None
    assert f"four process {alone.value:.2f} times the frames of one there in Cartpole ({ends(alone)})," in NOTES
    assert f"({ends(alone)}), and {in_task(ant_alone, 'Ant')}. MPS was measured after" in NOTES


@pytest.mark.parametrize("name", [ANT, CARTPOLE])
def test_the_runs_through_mps_began_after_those_without_it(name: str) -> None:
    without, through = ([str(one.started_utc) for one in runs_of(set_of(each))] for each in (name, f"{name}-mps"))
    assert max(without) < min(through)
    assert len(without) == len(through) == 9


def test_slowed_cores_of_the_eleventh_single_h200() -> None:
    assert f"Cores were slowed after {slowed_of(*WAYS)} marked iterations." in NOTES
