"""A campaign stops when what decides its runs' speed is edited while it runs, and keeps what has finished."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign import state
from suite.campaign.state import Campaign, Sources, code_of
from suite.errors import CampaignError
from suite.files.paths import ROOT
from suite.schema.record import Launch
from tests.fixtures.runs.simulated_campaign import NARROW, campaign_of, records, run_all
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.suite.env_check.test_worker import Environment

TIMING = "tasks/rank/timing.py"
PACKAGE = "lib/python3.12/site-packages/torch/__init__.py"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    for name in ("tasks", "suite"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(state, "ROOT", root)
    return root


def campaign_with(host: SimulatedHost, worker: Environment) -> Campaign:
    campaign = campaign_of(host, NARROW[:1], rounds=4)
    assert campaign.runtime is not None
    runtime = replace(campaign.runtime, worker=replace(campaign.runtime.worker, python=worker.python))
    return replace(campaign, runtime=runtime, sources=campaign.sources.with_workers([worker.python]))


def edit(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda checkout, _: edit(checkout / TIMING), TIMING),
        (lambda checkout, _: (checkout / "tasks/torch.py").write_text(""), "tasks/torch.py"),
        (lambda checkout, _: edit(checkout / "suite/schema/record.py"), "suite/schema/record.py"),
        (lambda _, worker: edit(worker / PACKAGE), PACKAGE),
    ],
    ids=["edited", "new", "schema", "package"],
)
def test_an_edit_between_runs_stops_the_campaign(
    checkout: Path, tmp_path: Path, change: Callable[[Path, Path], object], named: str
) -> None:
    worker = Environment(tmp_path / "worker")

    def edits(_: Launch) -> None:
        if len(host.ran) == 2:
            change(checkout, worker.folder)

    host = SimulatedHost(wall_s=0.0, on_start=edits)
    with pytest.raises(CampaignError) as stopped:
        run_all(campaign_with(host, worker), tmp_path / "out")
    assert named in str(stopped.value).partition(" changed since this command began")[0]
    assert [record.round for record in records(tmp_path / "out")] == [0, 1]


def test_code_that_runs_in_no_rank_may_change(checkout: Path, tmp_path: Path) -> None:
    def edits(_: Launch) -> None:
        edit(checkout / "suite/campaign/steps.py")
        edit(checkout / "tasks/catalog.toml")

    worker = Environment(tmp_path / "worker")
    run_all(campaign_with(SimulatedHost(wall_s=0.0, on_start=edits), worker), tmp_path / "out")
    assert len(records(tmp_path / "out")) == 4


def test_all_that_a_rank_imports_of_labscale_is_compared() -> None:
    code = code_of(ROOT)
    assert {"tasks/worker.py", "suite/schema/record.py", "suite/errors.py", "suite/external/core_probe.py"} <= set(code)
    assert not any(path.startswith(("suite/campaign", "tests")) for path in code)
    assert Sources(code=code).sha256 == Sources().sha256 != Sources(code={**code, "tasks/x.py": ""}).sha256
