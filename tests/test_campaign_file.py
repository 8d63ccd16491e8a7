"""Which commands may go on with a folder: real matrices, real options, and what campaign.json says of them."""

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from suite.campaign_plan import make_plan
from suite.campaign_state import Campaign
from suite.continuing import identity
from suite.folder import opened
from suite.matrix import MATRICES_PATH
from suite.options import Options
from suite.resources import UNBOUNDED
from suite.schema import Environment

SMOKE = MATRICES_PATH / "smoke.toml"


def identity_of(environment: Environment, matrix: str | Path, **options: object) -> dict[str, object]:
    asked = Options(matrix=str(matrix), **options)  # type: ignore[arg-type]
    console = Console(file=io.StringIO())
    campaign = Campaign(options=asked, console=console, machine=environment, device="cpu", resources=UNBOUNDED)
    return identity(make_plan(campaign))


@pytest.mark.parametrize("before", ["smoke", "another name"])
def test_a_matrix_may_be_named_otherwise(tmp_path: Path, environment: Environment, before: str) -> None:
    (tmp_path / "copy.toml").write_bytes(SMOKE.read_bytes())
    with opened(tmp_path / "out", {**identity_of(environment, "smoke"), "matrix": before}):
        pass
    for named in ("smoke", SMOKE, os.path.relpath(SMOKE), tmp_path / "copy.toml"):
        with opened(tmp_path / "out", identity_of(environment, named)) as folder:
            assert not folder.asks_for_more
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["matrix"] == before
