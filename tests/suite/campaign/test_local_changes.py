"""A campaign on GPUs says before hours of measuring that results of a changed checkout cannot be submitted."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite.campaign import steps
from suite.campaign.folder import Folder
from suite.external.machine import CANNOT_SUBMIT
from suite.schema.record import Device, Environment
from tests.suite.campaign.test_schedule import CASES, FIXED, campaign_of


@pytest.mark.parametrize(
    ("device", "git_dirty", "is_said"),
    [("cuda", True, True), ("cuda", False, False), ("cuda", None, False), ("cpu", True, False)],
)
def test_a_changed_checkout_is_said_first(
    environment: Environment, tmp_path: Path, device: Device, git_dirty: bool | None, is_said: bool
) -> None:
    file = io.StringIO()
    machine = replace(environment, git_dirty=git_dirty)
    campaign = replace(
        campaign_of(machine, FIXED, CASES[:1]), device=device, machine=machine, console=Console(file=file)
    )
    steps._say_what_is_left(campaign, Folder(root=tmp_path), 3)
    assert (CANNOT_SUBMIT in file.getvalue().splitlines()) == is_said
