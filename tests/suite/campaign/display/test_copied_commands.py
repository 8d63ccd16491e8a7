"""Commands that a campaign prints for copying: a shell has to take them as they stand, and they must lead on."""

import io
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite.campaign import steps
from suite.campaign.state import Campaign, WholeMatrix
from suite.errors import ReportError
from suite.install.worker import Worker
from suite.launch.contract import Runtime
from suite.launch.native import run as run_native
from suite.schema.record import Environment
from tests.fixtures.runs.asked_options import changed
from tests.suite.campaign.test_schedule import CASES, FIXED, campaign_of


@pytest.fixture
def campaign(environment: Environment, tmp_path: Path) -> Campaign:
    planned = campaign_of(environment, FIXED, CASES[:1])
    return replace(planned, options=changed(planned.options, out=tmp_path / "a b"), console=Console(file=io.StringIO()))


def said(campaign: Campaign) -> list[str]:
    assert isinstance(campaign.console.file, io.StringIO)
    return campaign.console.file.getvalue().splitlines()


def refuse_check() -> None:
    raise AssertionError("scripts alone are written")


def test_scripts_below_a_folder_with_a_space(campaign: Campaign) -> None:
    runtime = Runtime(
        worker=Worker(
            python=Path("python"), pins_sha256=None, asset_root=Path("/a"), asset_sha256=None, cache_dir=Path("/c")
        ),
        launch=run_native,
        check=refuse_check,  # type: ignore[arg-type]
        python_path=None,
        write_script=lambda launch: Path(launch.run_dir, "job.sbatch"),
    )
    steps.write_scripts(replace(campaign, runtime=runtime, whole=WholeMatrix.of(CASES)))
    commands = [shlex.split(line) for line in said(campaign)]
    run_dir = campaign.out / "raw" / CASES[0].case_id
    assert commands == [["sbatch", str(run_dir / f"r{index}" / "job.sbatch")] for index in range(3)]


def advice(campaign: Campaign) -> str:
    """The last line of what is said when there is no page."""
    without_page = steps.build_report(campaign)
    with pytest.raises(ReportError) as caught:
        steps.judge(without_page)
    return str(caught.value).splitlines()[-1]


def test_a_page_that_could_not_be_built(campaign: Campaign) -> None:
    """There are no results; a shell would take the folder for two."""
    assert advice(campaign) == f"Try again with: nox -s report -- '{campaign.out}'"


def test_a_page_whose_folder_is_taken(campaign: Campaign) -> None:
    """The same command without another folder would fail as this one did."""
    path = campaign.out / "report" / "notes.txt"
    path.parent.mkdir(parents=True)
    path.write_text("mine", encoding="utf-8")
    assert advice(campaign).startswith(f"Try again with: nox -s report -- '{campaign.out}' --out OTHER, ")
    assert path.read_text(encoding="utf-8") == "mine"
