"""What the notes of version 2026.12 say of the fourth pair of H200s is what results in git say."""

from reports.topics.determinism.model import pairs
from tests.fixtures.results.version_2026_12 import NOTES, runs_of, set_of, times

SET = "h200-x2-deterministic"


def test_deterministic_settings_with_rl_games() -> None:
    (pair,) = pairs(set_of(SET).campaign.results)
    assert pair.longer is not None
    assert f"With rl_games it is {times(pair.longer)}, on one H200 of the fourth pair" in NOTES
    assert [(each.runs, each.are_equal) for each in pair.repeats if each] == [(3, True), (3, True)]
    assert "three runs of one seed are equal, both ways.[^fourth_pair]" in NOTES


def test_versions_on_the_fourth_pair_of_h200s() -> None:
    runs = runs_of(set_of(SET))
    settings = runs[0].ranks[0].settings
    versions = f"Newton {settings['versions.newton']}, rl-games {settings['versions.rl-games']}"
    assert f"`{SET}`, commit f3e1c7a, driver {runs[0].environment.driver_version}, {versions}" in NOTES
