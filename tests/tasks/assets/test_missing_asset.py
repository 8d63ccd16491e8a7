"""What is said of an asset that is not there; Isaac Lab's own words are in tests/tasks/test_own_task.py."""

import re

import pytest

from tasks.assets.missing_asset import missing_asset_named
from tests.conftest import CaseMaker

ROOT = "/cache/assets-1-2"


@pytest.mark.parametrize(
    ("assets", "root", "words"),
    [
        ("official", ROOT, f"no {ROOT}/Isaac/a.usd"),  # it is there for everybody or for nobody
        ("offline", None, f"no {ROOT}/Isaac/a.usd"),
        ("offline", ROOT, "no /data/my_robot.usd"),  # a file of the user's
    ],
)
def test_another_file_is_left_as_it_is(assets: str, root: str | None, words: str, make_case: CaseMaker) -> None:
    with (
        pytest.raises(FileNotFoundError, match=f"^{re.escape(words)}$"),
        missing_asset_named(make_case(assets=assets), root),
    ):
        raise FileNotFoundError(words)


def test_an_asset_is_named_with_the_task_and_the_option(make_case: CaseMaker) -> None:
    needs = r"Isaac-Cartpole-Direct needs Isaac/a\.usd, .* --assets official"
    with pytest.raises(FileNotFoundError, match=needs), missing_asset_named(make_case(), ROOT):
        raise FileNotFoundError(f"Unable to resolve the file: {ROOT}/Isaac/a.usd")
