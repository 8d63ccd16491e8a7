"""Campaigns side by side on a simulated host of four GPUs: real threads and folders, no training."""

import io
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite import campaign as campaign_steps
from suite import packed, store
from suite.campaign_state import Campaign
from suite.errors import WorkerEnvironmentError
from suite.folder import Folder
from suite.interference import BESIDE_SUFFIX, ORDER, PROBE_SUFFIX
from suite.options import Options
from suite.packing import Forecast, shared_out
from suite.repeats import Rule
from suite.resources import Resources
from suite.schema import Case, CaseResult, Launch, PlannedCase, RunRecord
from suite.summary import print_forecast
from tests.generated_results import GPU_HOST, make_case
from tests.simulated_host import Ran, SimulatedHost

SLOTS = shared_out(num_gpus=4, cpus=range(8), num_cpus=8)
NARROW = [make_case("cartpole-strong", num_envs_global=size, device="cuda") for size in (128, 256, 512)]
NARROW += [make_case("ant-weak", num_envs_global=size, device="cuda", scaling="weak") for size in (64, 128)]
PAIR = make_case("cartpole-strong", world_size=2, device="cuda")
WIDE = make_case("cartpole-strong", world_size=4, device="cuda")
CASES = [*NARROW[:2], WIDE, *NARROW[2:], PAIR]
BASELINE = CASES[0].case_id
ROUNDS = 6


pytestmark = pytest.mark.usefixtures("plain_case_files")


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    yield
    assert [thread for thread in threading.enumerate() if thread.name in {case.case_id for case in CASES}] == []


def campaign_of(
    host: SimulatedHost, cases: Sequence[Case] = CASES, *, rounds: int = ROUNDS, pack: bool = True
) -> Campaign:
    planned = [
        PlannedCase(case=case, rounds=rounds, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=None)
        for case in cases
    ]
    return Campaign(
        options=Options(matrix="smoke", pack=pack or None),
        console=Console(file=io.StringIO(), width=200),
        machine=replace(GPU_HOST, gpus=GPU_HOST.gpus[:4], num_cpus=8),
        device="cuda",
        resources=Resources(nnodes=1, gpus_per_node=4, cpus_per_node=8),
        planned=tuple(planned),
        slots=SLOTS,
        rule=Rule(rounds=rounds),
        runtime=host.runtime(),
    )


def run_all(campaign: Campaign, root: Path) -> None:
    """As ``suite.campaign.run_all`` does it in a folder of its own."""
    folder = Folder(root=root)
    root.mkdir(exist_ok=True)
    if not packed.run(campaign, folder):
        campaign_steps._run_one_after_another(campaign, folder)


def said(campaign: Campaign) -> str:
    assert isinstance(campaign.console.file, io.StringIO)
    return campaign.console.file.getvalue()


def records(root: Path) -> list[RunRecord]:
    return [
        store.read_record(path)
        for path in sorted((root / "raw").rglob("r*/record.json"))
        if "." not in path.parent.name
    ]


def gpus(launch: Launch) -> set[str]:
    return set(launch.env["CUDA_VISIBLE_DEVICES"].split(","))


def assert_apart(ran: Sequence[Ran]) -> None:
    """No GPU and no core at two runs at a time; the share of each is the same, alone or not."""
    for each in ran:
        assert len(gpus(each.launch)) == each.launch.case.world_size
        assert len(each.launch.cpus) == 2 * each.launch.case.world_size
        assert each.launch.env["OMP_NUM_THREADS"] == "2"
        for other in each.beside:
            assert not gpus(each.launch) & gpus(other)
            assert not set(each.launch.cpus) & set(other.cpus)


def is_probe(each: Ran) -> bool:
    return each.launch.case.case_id.endswith(PROBE_SUFFIX)


def test_neighbours_that_do_not_disturb_are_allowed(tmp_path: Path, plain_case_files: dict[Path, CaseResult]) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host)
    run_all(campaign, tmp_path)
    assert_apart(host.ran)
    probes = sorted((each for each in host.ran if is_probe(each)), key=lambda each: each.launch.round)
    assert [bool(each.beside) for each in probes] == list(ORDER)
    assert {len(gpus(each.launch)) for each in probes} == {1}
    real = [each for each in host.ran if not is_probe(each)]
    assert Counter(each.key for each in real) == {(case.case_id, index): 1 for case in CASES for index in range(ROUNDS)}
    assert all(not each.beside for each in real if each.launch.case == WIDE)
    assert max(len(each.beside) for each in real) >= 3
    verdict = json.loads((tmp_path / "packing.json").read_text())
    assert verdict["packed"] is True
    assert len(verdict["alone_s"]) == len(verdict["beside_s"]) == 6
    assert set(verdict["neighbours"]) <= {1, 2, 3}
    assert f"Cases run side by side: {BASELINE} takes +0.0% longer beside others" in said(campaign)
    test = tmp_path / "interference" / f"{BASELINE}{PROBE_SUFFIX}.json"
    assert [record.neighbours for record in plain_case_files.pop(test).rounds if record.neighbours] == verdict[
        "neighbours"
    ]
    assert {path.stem: len(result.completed) for path, result in plain_case_files.items()} == {
        case.case_id.split("/")[1]: ROUNDS for case in CASES
    }


def test_records_say_how_many_ran_beside(tmp_path: Path) -> None:
    host = SimulatedHost()
    run_all(campaign_of(host), tmp_path)
    beside = {each.key: len(each.beside) for each in host.ran if not is_probe(each)}
    found = {(record.case.case_id, record.round): record.neighbours for record in records(tmp_path)}
    assert found.keys() == beside.keys()
    assert all(found[WIDE.case_id, index] == 0 for index in range(ROUNDS))
    assert all((found[key] or 0) <= 3 for key in found)
    assert any(found.values())


def test_neighbours_that_disturb_are_refused_and_what_ran_beside_runs_again(
    tmp_path: Path, plain_case_files: dict[Path, CaseResult]
) -> None:
    host = SimulatedHost(slowdown=1.1)
    campaign = campaign_of(host)
    run_all(campaign, tmp_path)
    assert_apart(host.ran)
    assert f"One after another: {BASELINE} takes +10.0% longer beside others (in each of the first 3" in said(campaign)
    assert sum(map(is_probe, host.ran)) == len(ORDER) // 2  # the other half would change nothing
    assert [record.neighbours for record in records(tmp_path)] == [0] * len(CASES) * ROUNDS
    aside = list((tmp_path / "raw").rglob("r*.packed-1/record.json"))
    kept = [result for path, result in plain_case_files.items() if path.stem.endswith(BESIDE_SUFFIX)]
    assert sum(len(result.rounds) for result in kept) == len(aside) > 0
    assert all(record.neighbours for result in kept for record in result.rounds)
    times_s = {record.ranks[0].samples["iteration_time_s"] for record in records(tmp_path)}
    assert times_s == {(0.5,) * 12}
    before = len(host.ran)
    run_all(campaign_of(host), tmp_path)
    assert len(host.ran) == before


def test_the_verdict_is_not_asked_for_again(tmp_path: Path) -> None:
    host = SimulatedHost()
    run_all(campaign_of(host), tmp_path)
    assert sum(map(is_probe, host.ran)) == len(ORDER)
    more = campaign_of(host, [*CASES, make_case("ant-weak", num_envs_global=512, device="cuda", scaling="weak")])
    run_all(more, tmp_path)
    assert sum(map(is_probe, host.ran)) == len(ORDER)
    assert "Cases run side by side: " in said(more)
    assert len(host.ran) == len(ORDER) + len(CASES) * ROUNDS + ROUNDS


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """A shell starts what is in its background deaf to Ctrl-C, and pytest with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("after", [0, 1, 5, 20, 35])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_every_lane_and_the_next_command_goes_on(tmp_path: Path, after: int) -> None:
    started = []

    def press(launch: Launch) -> None:
        started.append(launch)
        if len(started) == after + 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    host = SimulatedHost(on_start=press)
    with pytest.raises(KeyboardInterrupt):
        run_all(campaign_of(host), tmp_path)
    assert host._running == {}
    finished = {(record.case.case_id, record.round) for record in records(tmp_path)}
    assert finished == {each.key for each in host.ran if not is_probe(each)}
    run_all(campaign_of(host), tmp_path)
    assert_apart(host.ran)
    wanted = {(case.case_id, index): 1 for case in CASES for index in range(ROUNDS)}
    probes = {(BASELINE + PROBE_SUFFIX, index): 1 for index in range(len(ORDER))}
    assert Counter(each.key for each in host.ran) == wanted | probes
    assert len(records(tmp_path)) == len(wanted)


def test_what_cannot_run_at_all_ends_all_lanes_with_its_error(tmp_path: Path) -> None:
    def fail(launch: Launch) -> None:
        if launch.case == NARROW[3]:
            raise WorkerEnvironmentError("no such program")

    host = SimulatedHost(on_start=fail, wall_s=0.05)
    with pytest.raises(WorkerEnvironmentError, match="no such program"):
        run_all(campaign_of(host), tmp_path)
    assert host._running == {}
    assert {(record.case.case_id, record.round) for record in records(tmp_path)} == {
        each.key for each in host.ran if not is_probe(each)
    }


def test_kernels_of_a_task_are_compiled_by_one_round(tmp_path: Path) -> None:
    host = SimulatedHost()
    run_all(campaign_of(host), tmp_path)
    first: dict[str, Ran] = {}
    for each in host.ran:  # in the order in which they ended
        first.setdefault(each.launch.case.task, each)
    assert len(first) == 2
    for task, each in first.items():
        assert task not in {other.case.task for other in each.beside}


def test_a_campaign_without_room_beside_its_cases_says_so(tmp_path: Path) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host, [WIDE], rounds=2)
    run_all(campaign, tmp_path)
    assert "One after another: no case leaves room for another beside it." in said(campaign)
    assert [each.launch.round for each in host.ran] == [0, 1]
    assert not (tmp_path / "packing.json").exists()


def test_a_short_campaign_is_not_made_longer_by_a_test(tmp_path: Path) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host, rounds=1, pack=False)
    run_all(campaign, tmp_path)
    assert "One after another: packing would save about 4:00, and the test whether it may takes 7:30" in said(campaign)
    assert not any(each.beside for each in host.ran)
    assert_apart(host.ran)


def test_a_forecast_says_what_packing_saves_and_what_its_test_costs() -> None:
    campaign = campaign_of(SimulatedHost(), NARROW[:4], rounds=2)  # a minute each, since nothing is known
    expected = packed.forecast(campaign)
    assert expected == Forecast(alone_s=480, packed_s=120, test_s=450, refused_s=(360, 720))
    print_forecast(campaign.console, expected, num_slots=4)
    assert "about 2:00 instead of 8:00, and 7:30 to test that. Should they, the test costs 6:00 to 12:00 more." in said(
        campaign
    )


def test_a_test_without_neighbours_gives_no_verdict(tmp_path: Path) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host, NARROW[:2], rounds=1)
    run_all(campaign, tmp_path)
    assert "One after another: too few rounds are left to test it with." in said(campaign)
    assert not (tmp_path / "packing.json").exists()
    assert [record.neighbours for record in records(tmp_path)] == [0, 0]


def test_the_test_needs_rounds_that_complete(tmp_path: Path) -> None:
    host = SimulatedHost(fails=lambda launch: launch.round == 4 and launch.case.case_id.endswith(PROBE_SUFFIX))
    campaign = campaign_of(host)
    run_all(campaign, tmp_path)
    assert "One after another: round 4 of the interference test is crashed: " in said(campaign)
    assert [record.neighbours for record in records(tmp_path)] == [0] * len(CASES) * ROUNDS


def test_a_round_that_fails_is_a_result_and_the_others_go_on(tmp_path: Path) -> None:
    host = SimulatedHost(fails=lambda launch: launch.case == NARROW[3] and launch.round == 1)
    run_all(campaign_of(host), tmp_path)
    outcomes = {(record.case.case_id, record.round): record.outcome for record in records(tmp_path)}
    assert len(outcomes) == len(CASES) * ROUNDS
    assert [key for key, outcome in outcomes.items() if outcome != "completed"] == [(NARROW[3].case_id, 1)]


@pytest.mark.parametrize(
    ("options", "num_cpus", "why"),
    [
        (Options(matrix="smoke", pack=False), 8, "--no-pack asks for it"),
        (Options(matrix="smoke", launcher="apptainer"), 8, "--launcher apptainer cannot give rounds GPUs"),
        (Options(matrix="smoke"), 3, "3 cores are too few to share out over 4 GPUs"),
    ],
)
def test_a_host_that_is_not_shared_out_is_told_why(options: Options, num_cpus: int, why: str) -> None:
    shared = campaign_of(SimulatedHost())
    slots = packed.slots_of(options, device="cuda", num_gpus=4, num_cpus=num_cpus, cores=range(num_cpus))
    machine = replace(shared.machine, num_cpus=num_cpus)
    found = packed.why_not_shared(replace(shared, options=options, slots=slots, machine=machine))
    assert found is not None
    assert found.startswith(why)
    assert packed.why_not_shared(shared) is None
    assert packed.why_not_shared(replace(shared, options=options, slots=(), machine=machine, device="cpu")) is None


def test_the_quickest_of_the_narrowest_cases_is_measured_and_the_first_where_nothing_is_known() -> None:
    def planned(case: Case, wall_s: float | None) -> PlannedCase:
        return PlannedCase(case=case, rounds=3, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=wall_s)

    slow, quick, unknown = (planned(case, wall_s) for case, wall_s in zip(NARROW, (67.0, 30.0, None), strict=False))
    pair = planned(PAIR, 10.0)
    twin = planned(replace(NARROW[4], case_id=f"{NARROW[4].case_id}-aa"), 5.0)
    assert packed.baseline([slow, pair, unknown, quick, twin], num_slots=4) is quick
    assert packed.baseline([unknown, slow], num_slots=4) is slow
    first = planned(NARROW[3], None)
    assert packed.baseline([first, unknown, pair], num_slots=4) is first
    assert packed.baseline([pair], num_slots=2) is None


@pytest.mark.parametrize(("ant_s", "is_worth_it"), [(67.0, False), (30.0, True)])
def test_a_quick_case_makes_the_test_worth_its_time(tmp_path: Path, ant_s: float, *, is_worth_it: bool) -> None:
    """Cartpole strong and Ant weak on 1, 2 and 4 GPUs, three rounds each, as `plan` expects them of an H200."""
    host = SimulatedHost()
    strong = [make_case("cartpole-strong", world_size=size, device="cuda") for size in (1, 2, 4)]
    weak = [make_case("ant-weak", world_size=size, device="cuda", scaling="weak") for size in (1, 2, 4)]
    campaign = campaign_of(host, [*strong, *weak], rounds=3, pack=False)
    walls_s = (67.0, 46.0, 39.0, ant_s, ant_s, ant_s)
    campaign = replace(
        campaign,
        planned=tuple(
            replace(item, estimated_wall_s=wall_s) for item, wall_s in zip(campaign.planned, walls_s, strict=True)
        ),
    )
    run_all(campaign, tmp_path / "out")
    assert any(is_probe(each) for each in host.ran) == is_worth_it
