"""Which commands may go on with a folder: real matrices, real options, and what campaign.json says of them."""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suite.campaign.identity import FORMAT, identity, opened
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign, Sources
from suite.campaign.steps import provision
from suite.errors import CampaignError
from suite.matrix.file import MATRICES_PATH
from suite.matrix.resources import UNBOUNDED
from suite.schema.rank_variables import recorded
from suite.schema.record import Device, Environment
from tests.fixtures.runs.asked_options import options_with

SMOKE = MATRICES_PATH / "smoke.toml"


def planned(environment: Environment, matrix: str | Path, **options: object) -> Campaign:
    asked = options_with(matrix=str(matrix), **options)
    console = Console(file=io.StringIO())
    machine = replace(environment, host_label=asked.results.host_label)
    campaign = Campaign(options=asked, console=console, machine=machine, device="cpu", resources=UNBOUNDED)
    return make_plan(campaign)


def identity_of(environment: Environment, matrix: str | Path, **options: object) -> dict[str, object]:
    return identity(planned(environment, matrix, **options))


@pytest.mark.parametrize("before", ["smoke", "another name"])
def test_a_matrix_may_be_named_otherwise(tmp_path: Path, environment: Environment, before: str) -> None:
    (tmp_path / "copy.toml").write_bytes(SMOKE.read_bytes())
    with opened(tmp_path / "out", {**identity_of(environment, "smoke"), "matrix": before}):
        pass
    for named in ("smoke", SMOKE, os.path.relpath(SMOKE), tmp_path / "copy.toml"):
        with opened(tmp_path / "out", identity_of(environment, named)):
            pass
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["matrix"] == before


def said_of(root: Path, whose: dict[str, object]) -> list[str]:
    """Each difference that the refusal names."""
    with pytest.raises(CampaignError, match="results of another campaign") as refused, opened(root, whose):
        pass
    return [line.strip() for line in str(refused.value).splitlines() if line.startswith("  ")]


def test_a_matrix_that_was_edited_is_named_without_hashes(tmp_path: Path, environment: Environment) -> None:
    matrix, out = tmp_path / "own.toml", tmp_path / "out"
    text = SMOKE.read_text(encoding="utf-8")
    matrix.write_text(text, encoding="utf-8")
    with opened(out, identity_of(environment, matrix)):
        pass
    matrix.write_text(re.sub(r"^iterations = \d+", "iterations = 77", text, flags=re.MULTILINE), encoding="utf-8")
    (said,) = said_of(out, identity_of(environment, matrix))
    for part in (
        f"cases: there from the matrix {str(matrix)!r}, now",
        "edited, --stack differs, or",
        "another version",
    ):
        assert part in said
    assert not re.search(r"sha256|[0-9a-f]{32}|--seed", said)


def test_a_folder_that_an_older_labscale_began_is_refused(tmp_path: Path, environment: Environment) -> None:
    smoke = identity_of(environment, SMOKE)
    with opened(tmp_path, {name: value for name, value in smoke.items() if name != FORMAT}):
        pass
    (said,) = said_of(tmp_path, smoke)
    assert "schema_version: there None, this labscale reads 6." in said
    assert "commit a230a9f6" in said


@pytest.mark.parametrize(
    ("name", "value", "is_refused"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", True),
        ("LD_PRELOAD", "/data/ada/libjemalloc.so", True),
        ("PYTHONMALLOC", "debug", False),  # these do not reach a rank
        ("OMP_NUM_THREADS", "1", False),  # labscale's own number wins
    ],
)
def test_runs_in_other_shells_are_not_mixed(
    tmp_path: Path,
    environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    *,
    is_refused: bool,
) -> None:
    for one in recorded(os.environ):
        monkeypatch.delenv(one)
    with opened(tmp_path, identity_of(environment, SMOKE)):
        pass
    monkeypatch.setenv(name, value)
    if is_refused:
        (said,) = said_of(tmp_path, identity_of(environment, SMOKE))
        assert said == f"environment: there None, now {{{name!r}: {value.rpartition('/')[2]!r}}}"
    else:
        with opened(tmp_path, identity_of(environment, SMOKE)):
            pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 7}, "seed: there 42, now 7"),
        ({"host_label": "desk"}, "host_label: there None, now 'desk'"),
        ({"with_packages": ("newton==1.8.0",)}, "with_packages: there None, now ['newton==1.8.0']"),
    ],
    ids=["seed", "label", "with"],
)
def test_other_options_are_refused_before_anything_is_installed(
    tmp_path: Path, environment: Environment, options: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, identity_of(environment, SMOKE, repeats=3)):
        pass
    monkeypatch.setattr("suite.launch.registry.provision", lambda *_, **__: pytest.fail("it installs"))
    other = planned(environment, SMOKE, **{"repeats": 3, "out": tmp_path, **options})
    with pytest.raises(CampaignError, match=re.escape(said)):
        provision(other)


@pytest.mark.parametrize("there", [(), ("mine 1.0 (commit abc)",)])
def test_rounds_with_other_packages_in_the_worker_are_refused(
    tmp_path: Path, environment: Environment, there: tuple[str, ...]
) -> None:
    with opened(tmp_path, identity_of(replace(environment, worker_packages=there), SMOKE)):
        pass
    now = identity_of(replace(environment, worker_packages=("mine 1.0 (commit def)",)), SMOKE)
    assert said_of(tmp_path, now) == [f"worker_packages: there {list(there) or None}, now ['mine 1.0 (commit def)']"]


@pytest.mark.parametrize(
    ("device", "change", "refused"),
    [
        ("cuda", {"git_commit": "b" * 40}, "git_commit"),
        ("cuda", {"git_dirty": True}, "git_dirty"),
        ("cpu", {"git_commit": "b" * 40, "git_dirty": True}, None),
        ("cuda", {}, None),
    ],
)
def test_a_commit_between_two_commands(
    tmp_path: Path, environment: Environment, device: Device, change: dict[str, Any], refused: str | None
) -> None:
    """``submit`` takes runs of one commit alone, so a second one is refused before it is measured."""
    first = replace(planned(environment, SMOKE), device=device)
    first = replace(first, machine=replace(environment, git_commit="a" * 40, git_dirty=False))
    with opened(tmp_path, identity(first)):
        pass
    again = identity(replace(first, machine=replace(first.machine, **change)))
    if refused:
        (said,) = said_of(tmp_path, again)
        assert said.startswith(f"{refused}: there ")
    else:
        with opened(tmp_path, again):
            pass


def test_other_code_of_ranks_is_refused(tmp_path: Path, environment: Environment) -> None:
    smoke = planned(environment, SMOKE)
    with opened(tmp_path, identity(smoke)):
        pass
    edited = replace(smoke, sources=Sources(code={**smoke.sources.code, "tasks/worker.py": "0" * 64}))
    (said,) = said_of(tmp_path, identity(edited))
    assert said.startswith("code_sha256: there ")
