"""A campaign on GPUs says before hours of measuring that results of its checkout cannot be submitted."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite.campaign import steps
from suite.campaign.folder import Folder
from suite.external.machine import CANNOT_SUBMIT, NO_COMMIT
from suite.schema.record import Device, Environment
from tests.suite.campaign.test_schedule import CASES, FIXED, campaign_of


@pytest.mark.parametrize(
    ("device", "commit", "is_dirty", "said"),
    [
        ("cuda", "a" * 40, True, CANNOT_SUBMIT),
        ("cuda", "a" * 40, False, None),
        ("cuda", None, None, NO_COMMIT),
        ("cpu", None, True, None),
    ],
)
def test_what_submit_will_refuse_is_said_first(
    environment: Environment,
    tmp_path: Path,
    device: Device,
    commit: str | None,
    is_dirty: bool | None,
    said: str | None,
) -> None:
    file = io.StringIO()
    machine = replace(environment, git_commit=commit, git_dirty=is_dirty)
    campaign = replace(
        campaign_of(machine, FIXED, CASES[:1]), device=device, machine=machine, console=Console(file=file, width=400)
    )
    steps._say_what_is_left(campaign, Folder(root=tmp_path), 3)
    assert {CANNOT_SUBMIT, NO_COMMIT} & set(file.getvalue().splitlines()) == ({said} if said else set())
