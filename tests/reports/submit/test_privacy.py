"""Names of hosts and users in files that are about to be published: found with file and line."""

import json
import socket
from pathlib import Path
from typing import Final

import pytest

from reports.submit.command import TEXT_FILE, main
from reports.submit.privacy import private_texts
from suite.errors import NotFitToSubmit
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.finished_campaign import CASE, write_campaign

HOME: Final = "/ho" + "me/"  # split, so that this file passes a test of the architecture
UUID: Final = "GPU-263da6ff-0123-4567-89ab-0123456789ab"


@pytest.fixture(autouse=True)
def _a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is the desk of alice."""
    monkeypatch.setenv("HOME", "/users/alice")
    monkeypatch.setenv("LOGNAME", "alice.b")
    monkeypatch.setattr(socket, "gethostname", lambda: "desk-of-alice.example.org")


def written(folder: Path, *texts: str) -> Path:
    path = folder / "case.json"
    path.write_text(json.dumps({"labscale": {"reason": texts}}, indent=1))
    return path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("the node desk-of-alice.example.org is gone", "names this host"),
        ("desk-of-alice", "names this host"),
        ("no /users/alice/isaac/python", "names this host"),
        (f"File {HOME}bob/isaac.py", "names this host"),
        ("permission denied for alice", "names its user"),
        ("permission denied for alice.b", "names its user"),
        ("a traceback\n/scratch/team/env.py", "has a path of one machine"),
        ("env.path=/mnt/disk1/assets", "has a path of one machine"),
        ("file:///mnt/disk1/assets", "has a path of one machine"),
        (f"no {UUID}", "has the number of a single GPU"),
    ],
)
def test_names_are_found_with_their_line(text: str, why: str, tmp_path: Path) -> None:
    (found,) = private_texts([written(tmp_path, "harmless", text, "harmless")])
    assert (found.line, found.why.startswith(why)) == (5, True)
    assert found.text == json.dumps(text)


@pytest.mark.parametrize(
    "text",
    [
        "/usr/lib/x86_64-linux-gnu/libGL.so.1.7.0, /dev/nvidiactl",
        "by NVIDIA Corporation NVIDIA H200/PCIe/SSE2",
        "Warp CUDA error 2: out of memory (in function f, /builds/omniverse/warp/warp/native/warp.cu:4000)",
        "RUN_DIR/logs, CACHE/assets and HOME/isaac",
        f"{HOME}USER/isaac",
        "https://example.org/a/b",
        "315.3 GB/s at 256 MiB, 3 /s",
        "malice",
    ],
)
def test_what_names_nobody_passes(text: str, tmp_path: Path) -> None:
    assert list(private_texts([written(tmp_path, text)])) == []


def test_a_key_of_the_format_is_no_name_and_any_other_key_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "cases")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"cases": {"desk-of-alice/rsl_rl-n1": 3}}, indent=1))
    (found,) = private_texts([path])
    assert (found.line, found.text) == (3, '"desk-of-alice/rsl_rl-n1"')


def test_nothing_in_git_names_anybody() -> None:
    files = sorted(RESULTS.glob("*/cases/*/*.json"))
    assert len(files) > 300
    assert [str(found) for found in private_texts(files)] == []


def test_a_name_in_a_case_stops_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_campaign(tmp_path / "first")
    into = tmp_path / "results"
    into.mkdir()
    text = (source / CASE).read_text().replace('"glibc 2.39"', '"glibc 2.39 of desk-of-alice"')
    (source / CASE).write_text(text)
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if "of desk-of-alice" in line]
    assert main([str(source), "--into", str(into)]) == NotFitToSubmit.exit_code
    said = capsys.readouterr().err
    assert len(lines) > 3
    assert [line.partition(" names this host")[0] for line in said.splitlines()[:-1]] == [
        f"{CASE} line {number}" for number in lines
    ]
    assert list(into.iterdir()) == []
    assert not (source / TEXT_FILE).exists()
