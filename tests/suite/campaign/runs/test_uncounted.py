"""Runs that are no results: profiled, filmed and watched ones, which never change what was measured.

The nsys of these tests is a fake, and says so: no machine of the tests has Nsight Systems.
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from suite.__main__ import main
from suite.campaign.runs.uncounted import (
    HOST,
    PORT,
    check_tools,
    film_all,
    find_nsys,
    profile_all,
    tell_unfilmed,
    viewer_port,
    watch,
)
from suite.campaign.steps import judge
from suite.errors import Interrupted, UsageError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.records.folders import VIDEO_LIST, intact_videos, poster_path, read_videos, video_path
from suite.records.store import load_results, read_record
from suite.schema.record import CaseResult, Launch
from suite.statistics.reduce import completed_times_s
from suite.statistics.round_flags import flags
from tasks.film import filming as in_the_worker
from tests.fixtures.results.films import FILM, facts_of_film, store_film
from tests.fixtures.results.generated_results import make_case as generated_case
from tests.fixtures.results.generated_results import make_record
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import MARK, cartpole, marked_processes, matrix_of
from tests.fixtures.runs.simulated_campaign import NARROW, PAIR, campaign_of, printed
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.fixtures.runs.worker_probes import probe, run_in_worker

FAKE_NSYS = f"""#!{sys.executable}
import pathlib, subprocess, sys
print("this is a fake nsys: it runs the program and measures nothing", flush=True)
assert sys.argv[1] == "profile", sys.argv
options = [word for word in sys.argv[2:] if word.startswith("--")]
program = [word for word in sys.argv[2:]][sys.argv[2:].index(next(w for w in sys.argv[2:] if not w.startswith("--"))):]
code = subprocess.run(program).returncode
(output,) = (word.partition("=")[2] for word in options if word.startswith("--output="))
pathlib.Path(output + ".nsys-rep").write_text("fake report of " + " ".join(options))
sys.exit(code)
"""


@pytest.fixture
def fake_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text(FAKE_NSYS, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path


def test_without_nsys_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["bench", "--profile", "0", "--device", "cpu", "--out", str(tmp_path / "out")]) == 11
    assert not (tmp_path / "out").exists()
    assert "nsight-systems-cli" in capsys.readouterr().err


def test_tools_of_this_machine_are_not_in_a_container(fake_nsys: Path) -> None:
    assert find_nsys(options_with(matrix="smoke")) is None
    assert find_nsys(options_with(matrix="smoke", profile=(0,))) == str(fake_nsys)
    with pytest.raises(UsageError, match="--launcher container cannot reach"):
        find_nsys(options_with(matrix="smoke", profile=(0,), launcher="container"))
    campaign = campaign_of(SimulatedHost())
    for options in ({"video": True}, {"launcher": "container"}):
        check_tools(replace(campaign, options=options_with(**options)))
    with pytest.raises(UsageError, match="--launcher container was never tried"):
        check_tools(replace(campaign, options=options_with(video=True, launcher="container")))


def test_no_statistic_counts_a_profiled_round() -> None:
    case = generated_case()
    plain = [make_record(case, index=index) for index in range(3)]
    slow = [make_record(case, index=index, iteration_time_s=9.0) for index in range(3, 6)]
    profiled = [replace(record, profiled_ranks=(0,)) for record in slow]
    assert completed_times_s(plain + profiled) == [0.5] * 3
    assert CaseResult(case=case, rounds=(*plain, *profiled)).completed == tuple(plain)
    assert flags(plain + profiled) == ()
    assert (completed_times_s(plain + slow), len(flags(plain + slow))) == ([0.5] * 3 + [9.0] * 3, 1)  # the control


def test_other_ranks_are_profiled_anew(tmp_path: Path, fake_nsys: Path) -> None:
    host = SimulatedHost()
    for ranks, runs in (((0,), 2), ((0,), 2), ((0, 1), 3), ((0, 1), 3), ((1,), 4)):
        profile_all(campaign_of(host, [PAIR, NARROW[0]], out=tmp_path, profile=ranks))
        assert read_record(tmp_path / "profiles" / PAIR.case_id / "record.json").profiled_ranks == ranks
        assert len(host.ran) == runs  # the case of one rank has its own once and for all
        assert host.ran[-1].env["LABSCALE_NSYS"] == str(fake_nsys)
    kept = sorted(path.parent.name for path in (tmp_path / "profiles").rglob("record.json"))
    assert [name.rpartition(".")[2] for name in kept if ".earlier" in name] == ["earlier-1", "earlier-2"]
    failing = SimulatedHost(fails=lambda _: True)
    for ranks, retry_failed, started in (((0,), False, 1), ((0,), False, 1), ((0,), True, 2), ((1,), False, 3)):
        profile_all(campaign_of(failing, [PAIR], out=tmp_path / "b", profile=ranks, retry_failed=retry_failed))
        assert len(failing.started) == started


@pytest.mark.worker
def test_ranges_name_the_phases_and_nest(worker: Worker) -> None:
    made = probe(worker, "parts")
    assert made["ranges"] == []  # nothing is said unless the rank is profiled
    step = ["+environment_step", "-"]
    parts = ["+collection", *step, *step, "-", "+learning", "+all_reduce", "-", "-"]
    assert made["ranges_below_nsys"] == ["+iteration 0", *parts, "-", "+iteration 1", *parts, "-"]


@pytest.mark.slow
@pytest.mark.worker
def test_a_real_round_with_one_rank_below_the_fake(worker: Worker, fake_nsys: Path, tmp_path: Path) -> None:
    assert worker.python.exists()
    assert fake_nsys.exists()
    matrix, out = tmp_path / "one.toml", tmp_path / "out"
    matrix.write_text(matrix_of(cartpole("rsl_rl", topologies=("1x2",))), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report", "--profile", "1"]
    assert main(argv) == 0
    (result,) = load_results(out)
    assert [(record.round, record.profiled_ranks) for record in result.rounds] == [(0, ())]
    run_dir = out / "profiles" / result.case.case_id
    record = read_record(run_dir / "record.json")
    assert (record.outcome, record.profiled_ranks, len(record.ranks)) == ("completed", (1,), 2)
    assert sorted(path.name for path in run_dir.glob("*.nsys-rep")) == ["profile-rank-1.nsys-rep"]
    assert "--trace=cuda,nvtx" in (run_dir / "profile-rank-1.nsys-rep").read_text()
    logs = {path.parent.name: path.read_text() for path in run_dir.glob("logs/**/stdout.log")}
    assert ("this is a fake nsys" in logs["1"], "this is a fake nsys" in logs["0"]) == (True, False)
    assert json.loads((out / "campaign.json").read_text())["rounds"] == 1, "the profiled one is none of them"


ONE, OTHER = NARROW[0], replace(NARROW[1], workload="environment_step")


def films(launch: Launch) -> None:
    """Leave what the worker writes."""
    for path in FILM.iterdir():
        shutil.copyfile(path, Path(launch.run_dir) / path.name)


def filmed(root: Path, host: SimulatedHost, *, retry_failed: bool = False) -> tuple[list[str], tuple[str, ...], str]:
    campaign = campaign_of(host, [ONE, OTHER], out=root, video=True, retry_failed=retry_failed)
    unfilmed = film_all(campaign).unfilmed
    return list(intact_videos(root)), unfilmed, printed(campaign)


def test_a_video_is_stored_with_its_hashes_and_kept(tmp_path: Path) -> None:
    host = SimulatedHost(on_start=films)
    there, failed, text = filmed(tmp_path, host)
    assert (there, failed, len(host.ran)) == ([ONE.case_id], (), 1)
    assert f"{OTHER.case_id} cannot be filmed: it is a single-part test and trains nothing." in text
    assert intact_videos(tmp_path)[ONE.case_id].frames == facts_of_film().frames
    assert filmed(tmp_path, host)[0] == [ONE.case_id]
    assert len(host.ran) == 1


@pytest.mark.parametrize("path_of", [video_path, poster_path])
def test_a_file_with_another_hash_is_no_video(tmp_path: Path, path_of: Any) -> None:
    store_film(tmp_path, ONE.case_id)
    path = path_of(tmp_path, ONE.case_id)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert (list(intact_videos(tmp_path)), list(read_videos(tmp_path))) == ([], [ONE.case_id])
    host = SimulatedHost(on_start=films)
    assert filmed(tmp_path, host)[0] == [ONE.case_id]
    assert len(host.ran) == 1


def test_a_film_that_failed_is_told_and_tried_again_when_that_is_asked_for(tmp_path: Path) -> None:
    host = SimulatedHost(fails=lambda _: True)
    for _ in range(2):
        there, failed, _text = filmed(tmp_path, host)
        assert there == []
        assert len(failed) == 1
        assert f"{ONE.case_id} crashed while it was filmed" in failed[0]
        assert "--video --retry-failed" in failed[0]
    host.fails, host.on_start = (lambda _: False), films
    assert filmed(tmp_path, host)[:1] == ([],)
    assert filmed(tmp_path, host, retry_failed=True)[:2] == ([ONE.case_id], ())


def test_results_do_not_need_the_list_of_videos(tmp_path: Path) -> None:
    campaign = campaign_of(SimulatedHost(on_start=films), [ONE], out=tmp_path, video=True)
    assert film_all(campaign).unfilmed == ()
    (tmp_path / VIDEO_LIST).write_text("{", encoding="utf-8")
    campaign = film_all(campaign)
    (why,) = campaign.unfilmed
    assert str(tmp_path / VIDEO_LIST) in why
    assert f"No video: {why}" in printed(tell_unfilmed(campaign))
    judge(campaign)  # it is no failure


PROBE = """
from types import SimpleNamespace as Some
from tasks.film.filming import serve_if_asked
for rank in (0, 1):
    cfg = Some(sim=Some(visualizer_cfgs=None))
    serve_if_asked(cfg, rank=rank)
    served = cfg.sim.visualizer_cfgs
    print(served and [{name: getattr(viewer, name) for name in ("port", "bind_address", "display_address", "share")}
        for viewer in served])
"""
SERVED: dict[str, object] = {"port": 8123, "bind_address": HOST, "display_address": HOST, "share": False}


def test_a_port_that_is_taken_is_left_alone() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind((HOST, PORT))
            other.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        assert viewer_port() not in {0, PORT}


def test_what_cannot_be_watched_is_said_before_anything_is_installed() -> None:
    case = replace(NARROW[0], workload="environment_step")
    with pytest.raises(UsageError, match=rf"{case.case_id}: it is a single-part test(.|\n)*nox -s plan"):
        watch(campaign_of(SimulatedHost(), [case]))


@pytest.mark.slow
@pytest.mark.worker
@pytest.mark.usefixtures("ctrl_c")
def test_a_real_training_is_served_here_alone_until_ctrl_c(worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    folder = tmp_path / "temporary"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "suite", "watch", "cartpole*"],
        cwd=ROOT,
        env={**os.environ, MARK: str(tmp_path), "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "Watch it at" in line)
        (port,) = re.findall(rf"http://{re.escape(HOST)}:(\d+) ", line)
        listening = [
            connection.laddr for connection in psutil.net_connections("inet") if connection.status == psutil.CONN_LISTEN
        ]
        assert {at.ip for at in listening if at and at.port == int(port)} == {HOST}
        page = http.client.HTTPConnection(HOST, int(port), timeout=30)
        page.request("GET", "/")
        assert page.getresponse().status == 200
        page.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == Interrupted.exit_code == 130
    finally:
        process.kill()
        process.communicate()
    assert marked_processes(tmp_path) == []
    assert list(folder.glob("labscale-watch-*")) == []


@pytest.mark.worker
def test_isaac_lab_is_told_to_serve_this_machine_alone(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(in_the_worker.WATCH_VARIABLE, "8123")
    assert run_in_worker(worker, "-c", PROBE).splitlines()[-2:] == [str([SERVED]), "None"]
