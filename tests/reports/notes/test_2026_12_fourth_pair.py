"""What the notes of version 2026.12 say of the fourth pair of H200s is what results in git say."""

from reports.topics.determinism.model import pairs
from suite.statistics.reduce import steady_part
from tests.fixtures.results.version_2026_12 import NOTES, runs_of, set_of, times

SET = "h200-x2-deterministic"


def test_deterministic_settings_with_rl_games() -> None:
    (pair,) = pairs(set_of(SET).campaign.results)
    assert pair.longer is not None
    assert f"With rl_games it is {times(pair.longer)}, on one H200 of the fourth pair" in NOTES
    assert [(each.runs, each.are_equal) for each in pair.repeats if each] == [(3, True), (3, True)]
    assert "three runs of one seed are equal, both ways.[^fourth_pair]" in NOTES


def test_the_fourth_pair_of_h200s() -> None:
    runs = runs_of(set_of(SET))
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"on the fourth {settled} of {len(runs)}, on" in NOTES
    assert {record.environment.host_label for record in runs} == {"two GPUs (host X)"}
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"f3e1c7a"}
    settings = runs[0].ranks[0].settings
    versions = f"Newton {settings['versions.newton']}, rl-games {settings['versions.rl-games']}"
    assert f"`{SET}`, commit f3e1c7a, driver {runs[0].environment.driver_version}, {versions}" in NOTES
