"""The command of `nox -s pictures`."""

import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import WorkerEnvironmentError
from suite.install.task_pictures import VIEWS, draw, main
from suite.install.worker import Worker, provision_worker


def test_an_unknown_name_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["humanoid"]) == 11
    assert ", ".join(VIEWS) in capsys.readouterr().err


def test_a_python_without_isaac_lab_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    worker = Worker(
        python=Path(sys.executable), pins_sha256=None, asset_root=None, asset_sha256=None, cache_dir=tmp_path
    )
    with pytest.raises(WorkerEnvironmentError, match=r"(?s)Isaac-Ant .*No module named"):
        draw(VIEWS["ant"], tmp_path / "ant.png", worker)
    assert not (tmp_path / "ant.png").exists()


@pytest.mark.slow
def test_a_picture_of_a_real_simulation_shows_more_than_its_floor(tmp_path: Path) -> None:
    worker = provision_worker(on_message=print)
    view = VIEWS["cartpole"]
    sizes: list[int] = []
    for drawn in (view, replace(view, eye=(0.0, 40.0, 0.5), target=(0.0, 80.0, 2.0))):  # the second looks away from it
        file = tmp_path / f"{len(sizes)}.png"
        assert set(draw(drawn, file, worker)) == {"isaaclab", "newton", "warp-lang"}
        assert struct.unpack(">II", file.read_bytes()[16:24]) == (960, 540)
        sizes.append(file.stat().st_size)
    assert sizes[0] > 1.15 * sizes[1]
