"""The registry: a launcher is one entry that nothing else knows, and says what the plan of its cases may have."""

import io
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from suite.__main__ import main
from suite.campaign import steps
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.env_check.report import Report
from suite.errors import UsageError
from suite.install.bundle_contents import VERSIONS_VARIABLE
from suite.install.worker import Worker
from suite.install.worker_packages import digest_of
from suite.launch import registry
from suite.launch.contract import Asked, LauncherEntry, Runtime
from suite.launch.images import worker as image_worker
from suite.matrix.own_worker import OwnWorker
from suite.matrix.resources import Resources
from suite.options.declaration import option
from suite.records.store import read_case
from suite.schema.record import Environment, Launch
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.runs.simulated_host import SimulatedHost

# A launcher as somebody would add one, with all that its folder would have. It trains nothing: it greets.


@dataclass(frozen=True, kw_only=True)
class ToySettings:
    greeting: str = option("with --launcher toy: what it says", default="Hello", metavar="TEXT")


def _provision(settings: ToySettings, asked: Asked) -> Runtime:
    def greet(launch: Launch) -> None:
        asked.say(f"{settings.greeting}, {launch.case.case_id}")

    report = Report(
        host="toy", stack=asked.stack, device=asked.device, needed=frozenset({"host"}), checks=(), duration_s=0.0
    )
    runtime = SimulatedHost(wall_s=0.0, on_start=greet).runtime()
    worker = replace(runtime.worker, cache_dir=asked.out.parent / "cache", asset_root=Path("assets"))
    return replace(runtime, worker=worker, check=lambda: report)


TOY: Final = LauncherEntry(
    name="toy",
    resources=lambda _, machine: Resources(nnodes=2, gpus_per_node=0, cpus_per_node=machine.num_cpus or 1),
    provision=_provision,
    settings=ToySettings,
)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command whose launcher is the toy, of a matrix with one case of two nodes."""
    monkeypatch.setitem(registry.LAUNCHERS, TOY.name, TOY)
    matrix = tmp_path / "matrix.toml"
    matrix.write_text(matrix_of(cartpole("rsl_rl", topologies=["2x1"])), encoding="utf-8")
    return ["bench", "--matrix", str(matrix), "--out", str(tmp_path / "out"), "--device", "cpu", "--no-report"]


def test_bench_runs_a_round_by_it(bench: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*bench, "--launcher", "toy", "--greeting", "Good morning"]) == 0
    (path,) = (tmp_path / "out" / "cases").rglob("*.json")
    result = read_case(path)
    assert [record.outcome for record in result.rounds] == ["completed"]
    assert f"Good morning, {result.case.case_id}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--launcher", "moon"), "'emulated', 'toy'"),
        (("--greeting", "Hi"), "--launcher toy"),
        (("--launcher", "toy", "--profile", "0"), "which --launcher toy cannot reach"),
        (("--launcher", "toy", "--image", "a.sif"), "--image: only with bench --launcher container"),
        (("--launcher", "toy", "--render-only"), "--render-only: only with --launcher slurm, got --launcher toy"),
    ],
)
def test_its_option_is_its_own_and_what_it_cannot_do_is_refused(
    bench: list[str], asked: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*bench, *asked]) == 11
    assert message in capsys.readouterr().err


PACKAGES = ("newton==1.8.0", "warp-lang==1.19.0")
OWN = OwnWorker(packages=PACKAGES)
MATRIX = matrix_of(
    cartpole("rsl_rl", "skrl"),
    cartpole("rsl_rl", "skrl", division="open", variant="newer", with_packages=PACKAGES[::-1]),
)


def planned(environment: Environment, tmp_path: Path, **options: object) -> Campaign:
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX, encoding="utf-8")
    return make_plan(
        Campaign(
            options=options_with(matrix=str(path), out=tmp_path / "out", **options),
            console=Console(file=io.StringIO()),
            machine=environment,
            device="cpu",
            resources=Resources(nnodes=1, gpus_per_node=0, cpus_per_node=2),
        )
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *(
            ({"launcher": name}, None if name in ("native", "emulated") else f"--launcher {name}")
            for name in registry.LAUNCHERS
        ),
        ({"render": "kubernetes", "image": "i"}, "--render kubernetes"),
        ({"worker_python": Path("python")}, "--worker-python"),
    ],
)
def test_a_case_may_have_its_own_worker_on_this_machine_alone(
    environment: Environment, tmp_path: Path, options: dict[str, object], named: str | None
) -> None:
    cases = planned(environment, tmp_path, **options).planned
    assert [item.case.with_packages for item in cases] == [(), (), PACKAGES, PACKAGES]
    refused = [named if named and named in (item.infeasible or "") else item.infeasible for item in cases]
    assert refused == [None, None, named, named]


def test_each_worker_is_prepared_once_and_each_case_runs_in_its_own(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.launch.native.provision_worker", lambda **_: worker_at(tmp_path / "stack"))
    prepared: list[OwnWorker] = []

    def prepare(own: OwnWorker, base: Worker, **_: object) -> Worker:
        prepared.append(own)
        assert base == worker_at(tmp_path / "stack")
        return worker_at(tmp_path / "own")

    monkeypatch.setattr("suite.launch.native.provision_own_worker", prepare)
    campaign = steps.provision(planned(environment, tmp_path))
    assert prepared == [OWN]
    assert campaign.runtime is not None
    folders = [campaign.runtime.worker_of(item.case).python.parent.name for item in campaign.planned]
    assert folders == ["stack", "stack", "own", "own"]
    prepared.clear()
    steps.provision(planned(environment, tmp_path, case_globs=("*1x1",)))
    assert prepared == []  # no case that was chosen needs it


def test_from_a_bundle_cases_have_its_versions_beside_the_hosts_python(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = worker_at(tmp_path / "host")
    monkeypatch.setattr(sys, "executable", str(base.python))  # as labscale.sh starts labscale
    monkeypatch.setattr("suite.launch.native.provision_worker", lambda **_: base)
    monkeypatch.setattr("suite.launch.native.check_python", lambda *_, **__: {})
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path / "versions"))
    python = tmp_path / "versions" / digest_of(PACKAGES) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    base.cache_dir.parent.mkdir()
    campaign = planned(environment, tmp_path, worker_python=base.python)
    assert [item.infeasible for item in campaign.planned] == [None] * 4
    runtime = steps.provision(campaign).runtime
    assert runtime is not None
    assert [runtime.worker_of(item.case).python for item in campaign.planned] == [base.python] * 2 + [python] * 2


def worker_at(folder: Path) -> Worker:
    return Worker(
        python=folder / "python", pins_sha256=None, asset_root=None, asset_sha256=None, cache_dir=folder / "kernels"
    )


@pytest.mark.parametrize("told", [f"sha256:{'0123456789abcdef' * 4}", None])
@pytest.mark.parametrize("launcher", ["native", "emulated"])
def test_labscale_inside_an_image_names_the_digest_that_it_was_told(
    told: str | None, launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.launch.native.provision_worker", lambda **_: worker_at(tmp_path))
    options = options_with(matrix="smoke", launcher=launcher)

    def digest() -> str | None:
        asked = Asked(options=options, stack="kitless", device="cpu", say=print, out=tmp_path)
        return registry.runtime_of(asked).image_digest

    monkeypatch.setenv(image_worker.DIGEST, told or "")
    assert digest() == told
    monkeypatch.setenv(image_worker.DIGEST, "kitless:1")
    with pytest.raises(UsageError, match="LABSCALE_IMAGE_DIGEST is 'kitless:1', allowed is sha256:"):
        digest()
