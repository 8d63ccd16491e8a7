"""The folder of a campaign: which commands may go on with it, and what stays as it is."""

import errno
import fcntl
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.campaign import folder as folder_module
from suite.campaign import record_round as by_hand
from suite.campaign import steps
from suite.campaign.folder import FORMAT, Folder, identity, opened, require_identity
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign, Sources
from suite.errors import CampaignError, StoreError, WorkerEnvironmentError
from suite.files.cache import locked
from suite.matrix.file import MATRICES_PATH
from suite.records import store
from suite.schema.rank_protocol import CONFIGURATION_FILE, recorded, text_of
from suite.schema.record import CaseResult, Device, Environment, RunRecord
from suite.schema.stored import plain
from tests.fixtures.results.generated_results import make_case, make_record
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.simulated_campaign import campaign_of
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.suite.launch.test_manifests import NODES

SMOKE = MATRICES_PATH / "smoke.toml"
IDENTITY = {"matrix": "smoke", "gpus": ["H200"], "rounds": 3, "precision": None, "max_rounds": None}


def planned(here: Environment, matrix: str | Path = SMOKE, *, device: Device = "cpu", **options: Any) -> Campaign:
    asked = options_with(matrix=str(matrix), **options)
    machine = replace(here, host_label=asked.results.host_label)
    return make_plan(replace(campaign_of(SimulatedHost(), machine=machine, device=device), options=asked, runtime=None))


def begin(root: Path, whose: Mapping[str, object] | Campaign) -> None:
    """Begin a campaign in a folder, or go on with it."""
    with opened(root, identity(whose) if isinstance(whose, Campaign) else whose):
        pass


def refusal(root: Path, whose: Mapping[str, object] | Campaign) -> str:
    """The one difference that is named."""
    with pytest.raises(CampaignError, match="results of another campaign") as refused:
        begin(root, whose)
    (line,) = (line.strip() for line in str(refused.value).splitlines() if line.startswith("  "))
    return line


def test_a_folder_belongs_to_one_campaign(tmp_path: Path) -> None:
    for _ in range(2):
        begin(tmp_path / "out", IDENTITY)
        assert json.loads((tmp_path / "out" / "campaign.json").read_text()) == IDENTITY
    assert refusal(tmp_path / "out", {**IDENTITY, "gpus": ["L40"]}) == "gpus: there ['H200'], now ['L40']"
    begin(tmp_path / "out", {**IDENTITY, "rounds": 2, "precision": 0.5})  # the rule is that of the last command
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["precision"] == 0.5
    with opened(tmp_path, IDENTITY), pytest.raises(CampaignError, match="Another labscale process"):
        begin(tmp_path, IDENTITY)


@pytest.mark.parametrize("before", ["smoke", "another name"])
def test_a_matrix_may_be_named_otherwise(tmp_path: Path, environment: Environment, before: str) -> None:
    (tmp_path / "copy.toml").write_bytes(SMOKE.read_bytes())
    begin(tmp_path / "out", {**identity(planned(environment, "smoke")), "matrix": before})
    for named in ("smoke", SMOKE, os.path.relpath(SMOKE), tmp_path / "copy.toml"):
        begin(tmp_path / "out", planned(environment, named))
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["matrix"] == before


def test_a_matrix_that_was_edited_is_named_without_hashes(tmp_path: Path, environment: Environment) -> None:
    matrix, text = tmp_path / "own.toml", SMOKE.read_text(encoding="utf-8")
    matrix.write_text(text, encoding="utf-8")
    begin(tmp_path / "out", planned(environment, matrix))
    matrix.write_text(re.sub(r"^iterations = \d+", "iterations = 77", text, flags=re.MULTILINE), encoding="utf-8")
    line = refusal(tmp_path / "out", planned(environment, matrix))
    assert line.startswith(f"configurations: there from the matrix {str(matrix)!r}, now")
    assert not re.search(r"sha256|[0-9a-f]{32}|--seed", line)


def test_a_folder_that_an_older_labscale_began_is_refused(tmp_path: Path, environment: Environment) -> None:
    smoke = identity(planned(environment))
    begin(tmp_path, {name: value for name, value in smoke.items() if name != FORMAT})
    assert refusal(tmp_path, smoke).startswith("schema_version: there None, this labscale reads 6.")


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", "1"),
        ("LD_PRELOAD", "/data/ada/libjemalloc.so", "libjemalloc.so"),
    ],
)
def test_runs_in_other_shells_are_not_mixed(
    tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch, name: str, value: str, refused: str
) -> None:
    for variable in recorded(os.environ):
        monkeypatch.delenv(variable)
    begin(tmp_path, planned(environment))
    monkeypatch.setenv(name, value)
    assert refusal(tmp_path, planned(environment)) == f"environment: there None, now { ({name: refused}) }"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"seed": 7}, "seed: there 42, now 7"),
        ({"host_label": "desk"}, "host_label: there None, now 'desk'"),
        ({"with_packages": ("newton==1.8.0",)}, "with_packages: there None, now ['newton==1.8.0']"),
    ],
)
def test_other_options_are_refused_before_anything_is_installed(
    tmp_path: Path, environment: Environment, options: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path, planned(environment, repeats=3))
    monkeypatch.setattr("suite.launch.registry.runtime_of", lambda *_, **__: pytest.fail("it installs"))
    with pytest.raises(CampaignError, match=re.escape(line)):
        steps.provision(planned(environment, repeats=3, out=tmp_path, **options))


@pytest.mark.parametrize(
    ("device", "machine", "refused"),
    [
        ("cuda", {"git_commit": "b" * 40}, "git_commit"),  # `submit` takes runs of one commit alone
        ("cuda", {"git_dirty": True}, "git_dirty"),
        ("cpu", {"git_commit": "b" * 40, "git_dirty": True}, None),
        ("cpu", {"worker_packages": ("mine 1.0 (commit def)",)}, "worker_packages"),
    ],
)
def test_what_changed_between_two_commands_is_refused(
    tmp_path: Path, environment: Environment, device: Device, machine: dict[str, Any], refused: str | None
) -> None:
    first = planned(replace(environment, git_commit="a" * 40, git_dirty=False), device=device)
    begin(tmp_path, first)
    now = replace(first, machine=replace(first.machine, **machine))
    if refused:
        assert refusal(tmp_path, now).startswith(f"{refused}: there ")
    else:
        begin(tmp_path, now)
    other_code = Sources(code={**first.sources.code, "tasks/worker.py": "0" * 64})
    assert refusal(tmp_path, replace(first, sources=other_code)).startswith("code_sha256: there ")


def test_file_systems_without_locks_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # Lustre mounted with noflock

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(CampaignError, match=rf"{tmp_path} .*--out"):
        begin(tmp_path, IDENTITY)
    with (
        pytest.raises(WorkerEnvironmentError, match=r"x\.lock .*LABSCALE_CACHE"),
        locked(tmp_path / "x.lock", print),
    ):
        pass


@pytest.mark.parametrize(
    "text", ['{"matrix": ', "[]", "null", "[" * 100_000, '{"rounds": 0}', '{"precision": NaN}', '{"rounds": "3"}']
)
def test_a_corrupt_campaign_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(CampaignError, match=r"campaign\.json .*nox -s store"):
        begin(tmp_path, IDENTITY)
    assert (tmp_path / "campaign.json").read_text() == text


def stored(root: Path, record: RunRecord, *, how: str) -> Path:
    """``record`` below ``root`` as a published case, as a round of a campaign, or as something that cannot be read."""
    folder = Folder(root=root)
    if how == "case":
        path = folder.case_path(record.case)
        store.write_cases({path: CaseResult(case=record.case, rounds=(record,))})
    else:
        path = folder.record_path(record.case, record.round)
        path.parent.mkdir(parents=True)
        store.write_record(record, path)
        if how == "damaged":
            path.write_text("[]", encoding="utf-8")
    return path


@pytest.mark.parametrize("how", ["case", "round", "damaged"])
def test_results_that_say_not_whose_they_are_stay_as_they_are(
    tmp_path: Path, environment: Environment, how: str
) -> None:
    path = stored(tmp_path, make_record(make_case(nnodes=2, world_size=2)), how=how)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    message = str(path.relative_to(tmp_path))
    with pytest.raises(CampaignError, match=message):
        begin(tmp_path, IDENTITY)
    with pytest.raises(CampaignError, match=message):  # a node that Slurm gives is described in that folder
        steps.provision(planned(environment, out=tmp_path, launcher="slurm"))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_rounds_of_several_nodes_may_end_before_bench_begins_the_others(tmp_path: Path) -> None:
    """A user or Kubernetes starts these rounds outside a campaign, in the folder that bench uses."""
    case = make_case(nnodes=2, world_size=2)
    run_dir = Folder(root=tmp_path).run_dir(case, 0)
    run_dir.mkdir(parents=True)
    (run_dir / CONFIGURATION_FILE).write_text(text_of(case), encoding="utf-8")
    require_identity(tmp_path)  # it is planned, and nothing has ended
    by_hand.record(run_dir, rounds=1, exit_code=1, started_unix_s=0.0)
    assert Folder(root=tmp_path).case_path(case).exists()
    begin(tmp_path, IDENTITY)


def test_too_little_space_is_said_before_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MIN_FREE_GB", 1e9)
    with pytest.raises(CampaignError, match="GB free; a run needs"):
        Folder(root=tmp_path).require_space()
    with pytest.raises(CampaignError, match="is full"), opened(tmp_path, IDENTITY):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({"configuration_id": "/".join(["a"] * 5000)}, "r0"),
        ({}, "r00"),
        ({}, "other"),
        ({"nnodes": 0}, "r0"),
        ({"nnodes": 10**10}, "r0"),  # looking for each of its ranks took all memory
    ],
)
def test_a_folder_that_is_not_of_its_case_gets_no_record(
    changes: dict[str, object], folder: str, tmp_path: Path
) -> None:
    run_dir = tmp_path / "raw" / NODES.case.case_id / folder
    run_dir.mkdir(parents=True)
    (run_dir / CONFIGURATION_FILE).write_text(json.dumps(plain(NODES.case) | changes), encoding="utf-8")
    with pytest.raises(StoreError):
        by_hand.record(run_dir, rounds=1, exit_code=0, started_unix_s=1.7e9)
    assert [path.name for path in run_dir.rglob("*")] == [CONFIGURATION_FILE]
