"""Kernels are compiled before anything is timed: which runs that takes, and what becomes of them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from suite.campaign import steps
from suite.campaign.runs import warm_up
from suite.campaign.runs.warm_up import warm_ups
from suite.campaign.state import Campaign
from suite.install import damage
from suite.records import store
from suite.schema.record import Launch
from tests.fixtures.results.generated_results import CPU_HOST, GPU_HOST, make_case
from tests.fixtures.runs.simulated_campaign import campaign_of, planned_case, printed, records
from tests.fixtures.runs.simulated_host import SimulatedHost

pytestmark = pytest.mark.usefixtures("plain_case_files")
ANT = [make_case("ant-weak", world_size=ranks, scaling="weak", num_envs_global=32 * ranks) for ranks in (1, 2)]
HAND = [make_case("shadow-horizontal", world_size=2, scaling="weak", num_envs_global=4)]
STRONG = [make_case("ant-strong", world_size=ranks, num_envs_global=64) for ranks in (1, 2)]


def test_sizes_of_a_rank_have_one_each_and_libraries_share_it() -> None:
    assert [case.num_envs for case in warm_ups(STRONG)] == [64, 32]
    others = [replace(case, rl_library="skrl", case_id=case.case_id.replace("rsl_rl", "skrl")) for case in ANT]
    assert len(warm_ups([*ANT, *others])) == 1
    assert warm_ups([replace(ANT[0], workload="environment_step")]) == []


def test_on_gpus_what_compiles_its_network_has_its_own_and_serves_the_others() -> None:
    both = [make_case("ant-weak", rl_library=library, device="cuda") for library in ("rsl_rl", "rl_games")]
    assert [case.rl_library for case in warm_ups(both)] == ["rl_games"]
    assert [case.rl_library for case in warm_ups([replace(case, device="cpu") for case in both])] == ["rsl_rl"]
    alone = replace(both[0], num_envs=64, case_id="ant-weak/alone-n64-1x1")
    assert [case.rl_library for case in warm_ups([*both, alone])] == ["rl_games", "rsl_rl"]
    two = make_case("ant-weak", world_size=2, scaling="weak", rl_library="rl_games", device="cuda")
    cases = warm_ups([both[1], replace(two, num_envs=both[1].num_envs, num_envs_global=2 * both[1].num_envs)])
    assert [case.world_size for case in cases] == [1, 2], "its network is compiled anew for each number of ranks"


@dataclass(kw_only=True)
class Warming:
    """A campaign whose runs leave kernels in a cache; ``go_on`` is one more command in its folder."""

    root: Path
    fails: Callable[[Launch], bool] = lambda _: False
    started: list[str] = field(default_factory=list)

    @property
    def cache_dir(self) -> Path:
        return self.root / "cache"

    @property
    def out(self) -> Path:
        return self.root / "out"

    def go_on(self, *, retry_failed: bool = False) -> Campaign:
        host = SimulatedHost(wall_s=0.0, on_start=self._start, fails=self.fails)
        worker = replace(host.runtime().worker, cache_dir=self.cache_dir)
        asked = campaign_of(
            host, [*ANT, *HAND], rounds=1, machine=CPU_HOST, device="cpu", out=self.out, retry_failed=retry_failed
        )
        campaign = replace(
            asked,
            runtime=replace(asked.provided, worker=worker),
            warm_ups=tuple(map(planned_case, warm_ups([*ANT, *HAND]))),
        )
        self.started.clear()
        return steps.run_all(campaign)

    def _start(self, launch: Launch) -> None:
        self.started.append(launch.case.case_id)
        (self.cache_dir / "warp/1.17.0/wp_solver_a1b2c3d").mkdir(parents=True, exist_ok=True)


@pytest.fixture
def warming(tmp_path: Path) -> Warming:
    return Warming(root=tmp_path)


WARM_UPS = [case.case_id for case in warm_ups([*ANT, *HAND])]
ROUNDS = [case.case_id for case in [*ANT, *HAND]]


def test_warm_ups_run_first_count_nowhere_and_are_not_run_on_a_warm_machine(warming: Warming) -> None:
    text = printed(warming.go_on())
    assert warming.started == [*WARM_UPS, *ROUNDS]
    assert text.count("warm-up, not counted") == 2 * len(WARM_UPS)
    assert "2 warm-ups come first, not counted, so that no kernel is compiled while something is timed: " in text
    assert f"[{len(WARM_UPS)}/{len(WARM_UPS)}] {WARM_UPS[-1]} run 0" in text
    assert sorted(record.case.case_id for record in records(warming.out)) == sorted(ROUNDS)
    kept = store.read_record(warming.out / "warm-up" / "raw" / WARM_UPS[0] / "r0" / "record.json")
    assert (kept.outcome, kept.case.iterations) == ("completed", 2)
    assert "not counted" not in printed(warming.go_on())
    assert warming.started == []
    shutil.rmtree(warming.out)
    warming.go_on()
    assert warming.started == ROUNDS


@pytest.mark.parametrize("by", ["damage", "an empty cache"])
def test_kernels_that_are_gone_are_compiled_again(warming: Warming, by: str) -> None:
    warming.go_on()
    shutil.rmtree(warming.out / "raw")
    shutil.rmtree(warming.out / "cases")
    if by == "damage":
        (warming.cache_dir / "warp/1.17.0/wp_solver_a1b2c3d/wp_solver_a1b2c3d.meta").touch()
    else:
        shutil.rmtree(warming.cache_dir / "warp")
    warming.go_on()
    assert warming.started == [*WARM_UPS, *ROUNDS]
    assert (warming.out / "warm-up" / "raw" / WARM_UPS[0] / "r0.earlier-1").is_dir()


def test_a_warm_up_that_fails_fails_the_rounds_of_its_task_until_they_are_retried(warming: Warming) -> None:
    warming.fails = lambda launch: launch.case.case_id == WARM_UPS[0]
    text = printed(warming.go_on())
    assert warming.started == [*WARM_UPS, *(case.case_id for case in HAND)]
    warmed = store.read_record(warming.out / "warm-up" / "raw" / WARM_UPS[0] / "r0" / "record.json")
    for case in ANT:
        record = store.read_record(warming.out / "raw" / case.case_id / "r0" / "record.json")
        assert (record.outcome, record.ranks) == ("crashed", ())
        assert record.reason == f"its warm-up: {warmed.reason}"
    assert str(warming.out / "warm-up" / "raw" / WARM_UPS[0] / "r0" / "logs") in text
    warming.fails = lambda _: False
    warming.go_on()
    assert warming.started == []
    warming.go_on(retry_failed=True)
    assert warming.started == [WARM_UPS[0], *(case.case_id for case in ANT)]
    assert {record.outcome for record in records(warming.out)} == {"completed"}


def test_an_interrupted_warm_up_is_run_again(warming: Warming) -> None:
    def interrupt(launch: Launch) -> bool:
        if launch.case.case_id == WARM_UPS[1]:
            raise KeyboardInterrupt
        return False

    warming.fails = interrupt
    with pytest.raises(KeyboardInterrupt):
        warming.go_on()
    warming.fails = lambda _: False
    warming.go_on()
    assert warming.started == [WARM_UPS[1], *ROUNDS]
    assert (warming.out / "warm-up" / "raw" / WARM_UPS[1] / "r0.interrupted-1").is_dir()


def test_kernels_of_one_kind_of_gpu_are_not_those_of_another(tmp_path: Path) -> None:
    (tmp_path / "warp/1.17.0/wp_solver_a1b2c3d").mkdir(parents=True)
    (case,) = warm_ups([make_case("ant-weak", device="cuda", rl_library="rl_games")])
    warm_up.remember(tmp_path, case, GPU_HOST)
    newer = replace(GPU_HOST, gpus=tuple(replace(gpu, compute_capability="10.0") for gpu in GPU_HOST.gpus))
    needed = [warm_up.kernels_of(case)]
    assert not warm_up.is_missing(tmp_path, case, GPU_HOST, needed)
    assert warm_up.is_missing(tmp_path, case, newer, needed)
    assert not warm_up.is_missing(tmp_path, case, newer, []), "nothing waits for them"
    kept = sorted(path.name for path in (tmp_path / damage.WARM).iterdir())
    assert kept == ["cuda-9.0-kitless-Isaac-Ant-n128-rl_games-1x1.json", "cuda-9.0-kitless-Isaac-Ant-n128.json"]
    assert json.loads((tmp_path / damage.WARM / kept[1]).read_text())["case"] == case.case_id


def test_other_versions_compile_kernels_of_their_own() -> None:
    case = ANT[0]
    others = [
        replace(case, case_id=f"{case.case_id}-{number}", with_packages=(f"newton=={number}",)) for number in (1, 2)
    ]
    cases = warm_ups([case, *others, replace(others[0], rl_library="skrl")])
    assert [case.with_packages for case in cases] == [(), ("newton==1",), ("newton==2",)]
    assert len({case.case_id for case in cases}) == 3
    plain, *others_in_words = map(warm_up.in_words, cases)
    assert others_in_words == [f"{plain}, newton==1", f"{plain}, newton==2"]
    assert [warm_up.is_of(case, others[0]) for case in cases] == [False, True, False]


def test_a_case_that_starts_cold_has_no_warm_up_and_does_not_fail_with_one() -> None:
    cold = [replace(case, case_id=f"{case.case_id}-cold", kernel_cache="empty") for case in ANT]
    assert warm_ups(cold) == []
    (of_warm,) = warm_ups([*cold, *ANT])
    assert of_warm.kernel_cache == "kept"
    assert [warm_up.is_of(of_warm, case) for case in (*ANT, *cold)] == [True, True, False, False]
