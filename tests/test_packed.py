"""Campaigns side by side on a simulated host of four GPUs: real threads and folders, no training."""

import gc
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign import steps as campaign_steps
from suite.campaign.folder import Folder
from suite.campaign.packing import interference
from suite.campaign.packing import run as packed
from suite.campaign.packing.interference import ORDER
from suite.campaign.resume import with_more_rounds
from suite.errors import WorkerEnvironmentError
from suite.schema.case_suffixes import BESIDE_SUFFIX, PROBE_SUFFIX
from suite.schema.record import CaseResult, Launch
from tests.generated_results import make_case
from tests.simulated_campaign import (
    BASELINE,
    CASES,
    NARROW,
    ROUNDS,
    WIDE,
    assert_apart,
    campaign_of,
    gpus,
    is_probe,
    records,
    run_all,
    said,
)
from tests.simulated_host import Ran, SimulatedHost

pytestmark = pytest.mark.usefixtures("plain_case_files")


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    yield
    assert [thread for thread in threading.enumerate() if thread.name in {case.case_id for case in CASES}] == []


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


def test_more_rounds_of_stored_cases_run_again_too_where_neighbours_disturb(
    tmp_path: Path, plain_case_files: dict[Path, CaseResult]
) -> None:
    """One round each was not worth the test, six are."""
    host = SimulatedHost(slowdown=1.1)
    run_all(campaign_of(host, rounds=1, pack=False), tmp_path)
    assert len(plain_case_files) == len(CASES)
    more = campaign_of(host)
    folder = with_more_rounds(more, Folder(root=tmp_path, asks_for_more=True))
    assert folder.reopened == {case.case_id for case in CASES}
    assert not packed.run(more, folder)
    assert list((tmp_path / "raw").rglob("r*.packed-1/record.json"))
    campaign_steps._run_one_after_another(more, folder)
    assert [record.neighbours for record in records(tmp_path)] == [0] * len(CASES) * ROUNDS
    for case in CASES:
        assert [record.neighbours for record in plain_case_files[folder.case_path(case)].rounds] == [0] * ROUNDS


def test_killed_when_all_rounds_have_run_beside_the_test_none_counts_without_a_verdict(
    tmp_path: Path, plain_case_files: dict[Path, CaseResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise SystemExit

    host = SimulatedHost(slowdown=1.1)
    with monkeypatch.context() as patch:
        patch.setattr(packed, "_set_untested_aside", killed)
        with pytest.raises(SystemExit):
            run_all(campaign_of(host, NARROW[:3], rounds=1), tmp_path)
    assert all(record.neighbours for record in records(tmp_path))
    assert not (tmp_path / "packing.json").exists()
    for _ in range(2):
        run_all(campaign_of(host, NARROW[:3], rounds=1), tmp_path)
        assert [record.neighbours for record in records(tmp_path)] == [0, 0, 0]
    results = [result for result in plain_case_files.values() if not result.case.case_id.endswith(BESIDE_SUFFIX)]
    assert [record.neighbours for result in results for record in result.rounds] == [0, 0, 0]


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
    gc.collect()  # what Ctrl-C left half done warns here, not in the next test


@pytest.mark.filterwarnings("ignore:unclosed scandir iterator:ResourceWarning")  # of a glob that Ctrl-C ended
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # that Ctrl-C came in the middle of opening
@pytest.mark.parametrize("after", [0, 5, 35])
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


def test_the_test_needs_rounds_that_complete(tmp_path: Path) -> None:
    host = SimulatedHost(fails=lambda launch: launch.round == 4 and launch.case.case_id.endswith(PROBE_SUFFIX))
    campaign = campaign_of(host)
    run_all(campaign, tmp_path)
    assert "One after another: round 4 of the interference test is crashed: " in said(campaign)
    assert [record.neighbours for record in records(tmp_path)] == [0] * len(CASES) * ROUNDS


def test_a_test_of_which_a_round_failed_is_made_again_with_the_rounds_that_failed(
    tmp_path: Path, plain_case_files: dict[Path, CaseResult]
) -> None:
    broken = SimulatedHost(fails=lambda launch: launch.round == 4 and launch.case.case_id.endswith(PROBE_SUFFIX))
    run_all(campaign_of(broken), tmp_path)
    host, folder = SimulatedHost(), Folder(root=tmp_path)
    sizes = [make_case("ant-weak", num_envs_global=512 * n, device="cuda", scaling="weak") for n in (1, 2, 3, 4)]
    more = campaign_of(host, [*CASES, *sizes])
    packed.set_failed_test_aside(more, folder)
    run_all(more, tmp_path)
    assert "Cases run side by side: " in said(more)
    assert sum(map(is_probe, host.ran)) == len(ORDER) - 4, "what completed is not run again"
    kept = interference.read(tmp_path / interference.FILE)
    packed.set_failed_test_aside(more, folder)
    assert kept is not None
    assert interference.read(tmp_path / interference.FILE) == kept, "a verdict that rests on rounds stays"
    (probe,) = (each for path, each in plain_case_files.items() if path.name.endswith(f"{PROBE_SUFFIX}.json"))
    assert {record.outcome for record in probe.rounds} == {"completed"}


@pytest.mark.parametrize("is_shared", [True, False], ids=["nothing-left-to-run", "one-after-another"])
def test_a_test_of_which_a_round_failed_stays_where_none_is_made(
    tmp_path: Path, plain_case_files: dict[Path, CaseResult], *, is_shared: bool
) -> None:
    """The verdict and its rounds were put aside for a test that nothing asked for, and no page said any more of it."""
    broken = SimulatedHost(fails=lambda launch: launch.round == 4 and launch.case.case_id.endswith(PROBE_SUFFIX))
    run_all(campaign_of(broken), tmp_path)
    path, folder = tmp_path / interference.FILE, Folder(root=tmp_path)
    refused = path.read_bytes()
    (stored,) = (each for each in plain_case_files if each.name.endswith(f"{PROBE_SUFFIX}.json"))
    sizes = [make_case("ant-weak", num_envs_global=512 * n, device="cuda", scaling="weak") for n in (1, 2, 3, 4)]
    again = campaign_of(SimulatedHost()) if is_shared else campaign_of(SimulatedHost(), [*CASES, *sizes])
    packed.set_failed_test_aside(again if is_shared else replace(again, slots=()), folder)
    assert path.read_bytes() == refused
    assert stored.exists()


def test_a_round_that_fails_is_a_result_and_the_others_go_on(tmp_path: Path) -> None:
    host = SimulatedHost(fails=lambda launch: launch.case == NARROW[3] and launch.round == 1)
    run_all(campaign_of(host), tmp_path)
    outcomes = {(record.case.case_id, record.round): record.outcome for record in records(tmp_path)}
    assert len(outcomes) == len(CASES) * ROUNDS
    assert [key for key, outcome in outcomes.items() if outcome != "completed"] == [(NARROW[3].case_id, 1)]
