"""Filmed rounds: one after the counted ones, whose video is stored beside the results and never changes them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.__main__ import main
from suite.campaign.folder import Folder
from suite.campaign.runs.filming import film_cases, require_camera
from suite.errors import UsageError
from suite.install.worker import Worker
from suite.records.store import load_results
from suite.records.videos import LIST, intact_videos, poster_path, read_videos, video_path
from suite.schema.record import Launch
from tests.fixtures.results.films import FILM, facts_of_film, store_film
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.runs.simulated_campaign import NARROW, campaign_of, said
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.fixtures.runs.worker_probes import run_in_worker
from tests.tasks.test_filming import assert_whole

ONE, OTHER = NARROW[0], replace(NARROW[1], workload="environment_step")
SHOWN = "print(len(set(__import__('PIL.Image').Image.open(__import__('sys').argv[1]).convert('RGB').getdata())))"


def films(launch: Launch) -> None:
    """Leave what the worker writes."""
    for path in FILM.iterdir():
        shutil.copyfile(path, Path(launch.run_dir) / path.name)


def filmed(root: Path, host: SimulatedHost, *, retry_failed: bool = False) -> tuple[list[str], list[str], str]:
    campaign = campaign_of(host, [ONE, OTHER])
    options = changed(campaign.options, video=True, retry_failed=retry_failed)
    root.mkdir(exist_ok=True)
    there, failed = film_cases(replace(campaign, options=options), Folder(root=root))
    return there, failed, said(campaign)


def test_a_launcher_that_was_never_tried_is_refused_before_anything_runs() -> None:
    require_camera(options_with(matrix="smoke", video=True))
    require_camera(options_with(matrix="smoke", launcher="container"))
    with pytest.raises(UsageError, match="--launcher container was never tried"):
        require_camera(options_with(matrix="smoke", video=True, launcher="container"))


def test_a_video_is_stored_with_its_hashes_and_kept(tmp_path: Path) -> None:
    host = SimulatedHost(on_start=films)
    there, failed, text = filmed(tmp_path, host)
    assert (there, failed, len(host.ran)) == ([ONE.case_id], [], 1)
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
    assert filmed(tmp_path, host, retry_failed=True)[:2] == ([ONE.case_id], [])


@pytest.mark.worker
def test_a_real_film_of_cartpole(worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix, out = tmp_path / "one.toml", tmp_path / "out"
    matrix.write_text(matrix_of(cartpole("rsl_rl")), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report", "--video"]
    assert main(argv) == 0
    (result,) = load_results(out)
    assert [record.round for record in result.rounds] == [0]
    assert json.loads((out / "campaign.json").read_text())["rounds"] == 1, "the filmed one is none of them"
    ((case_id, video),) = intact_videos(out).items()
    assert case_id == result.case.case_id
    assert (video.frames, video.environments) == (24, 4)
    assert video.duration_s == pytest.approx(24 / 30)
    size_px = (video.width_px, video.height_px)
    path = video_path(out, case_id)
    assert_whole(path, frames=24, duration_s=video.duration_s, size_px=size_px)
    assert 10_000 < path.stat().st_size < 1_500_000
    assert int(run_in_worker(worker, "-c", SHOWN, str(poster_path(out, case_id)))) > 500  # colours
    assert "1 video: " in capsys.readouterr().out
    before = (out / "cases" / f"{case_id}.json").read_bytes()
    (out / LIST).write_text("{", encoding="utf-8")
    assert main(argv) == 0, "results do not need a video"
    assert "No video: " in capsys.readouterr().out
    assert (out / "cases" / f"{case_id}.json").read_bytes() == before
