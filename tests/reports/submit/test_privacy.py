"""Names of hosts and users in files that are about to be published: found with file and line."""

import json
import socket
from pathlib import Path
from typing import Final

import pytest

from reports.__main__ import main as session
from reports.submit.command import TEXT_FILE
from reports.submit.privacy import Private, private_texts, published
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


def written(folder: Path, **values: object) -> Path:
    path = folder / "case.json"
    path.write_text(json.dumps({"labscale": values}, indent=1))
    return path


def private(path: Path) -> list[Private]:
    return list(private_texts(published([path]).content))


@pytest.mark.parametrize(
    "text",
    [
        "listens on 10.1.2.3:29500", "10.1.2.3", "fe80::1ff:fe23:4567:890a", "[2001:db8::7]:29500", "52:54:00:12:ab:9f",
        "GPU at 0000:3B:00.0", "GPU-263DA6FF-0123-4567-89AB-0123456789AB", "serial 1654922012345", "SN 1323A5",
        "ada.b@example.org", "node17.cluster.internal", "http://gitlab.cluster.internal/team", "nodes gpu[01-04,07]",
        "user=ada", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENG", "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9",
        "/opt/acme/bin/python3", "/var/lib/acme/assets", "/run/user/1000/bus", f"{HOME}bob/isaac.py", "a/scratch/ada/x",
        r"C:\Users\ada\isaac", r"\\share\ada", "written by Zaphod",
    ],
)  # fmt: skip
def test_a_text_with_an_unknown_word_is_replaced_by_its_fault_word(text: str, tmp_path: Path) -> None:
    check = {"name": "links", "fault": "no_link", "verdict": "failure", "found": text}
    path = written(tmp_path, check=check, reason=f"RuntimeError: {text}", outcome="crashed", notes=[text])
    public = published([path])
    values = json.loads(public.content[path])["labscale"]
    assert values["check"] == check | {"found": "no_link"}
    assert (values["reason"], values["outcome"], values["notes"]) == ("RuntimeError", "crashed", ["not published"])
    assert (public.texts, public.replaced) == (frozenset(), 3)


@pytest.mark.parametrize(
    "text",
    [
        "kernel 580.159.04, libcuda.so.1 580.159.04, NVML 580.159.04",
        "NCCL 2.28.9 over 4 GPU(s), bus bandwidth 326.3 GB/s at 256 MiB",
        "/usr/lib/x86_64-linux-gnu/libGL.so.1.7.0, /dev/nvidiactl",
        "104 µs at best for a fixed piece of Python's work; 88 of 128 looks at 16 of 16 cores over 1.3 times that",
        "the round is oom, so it has no window",
        "1 x Example GPU 151 GB",
    ],
)
def test_a_text_of_known_words_is_published_and_shown(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, check={"found": text}, environment={"gpus": [{"name": "Example GPU"}]})
    public = published([path])
    assert public.content[path] == path.read_bytes()
    assert public.texts == {text}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("desk-of-alice.example.org", "names this host"),
        ("desk-of-alice", "names this host"),
        ("no /users/alice/isaac/python", "names this host"),
        (f"File {HOME}bob/isaac.py", "names this host"),
        ("permission denied for alice.b", "names its user"),
        ("env.path=/mnt/disk1/assets", "has a path of one machine"),
        ("file:///mnt/disk1/assets", "has a path of one machine"),
        (r"D:\\data", "has a path of one machine"),
        (f"no {UUID}", "has the number of a single GPU"),
        (f"no {UUID.upper()}", "has the number of a single GPU"),
        ("tcp://10.1.2.3", "has a network address"),
        ("fe80::1ff:fe23:4567:890a", "has a network address"),
        ("00000000:3b:00.0", "has the place of a device"),
        ("ada@example.org", "has an e-mail address"),
        ("API_TOKEN=abc", "has a secret"),
        ("AKIA" + "IOSFODNN7EXAMPLE", "has a secret (AWS Access Key)"),
        ("postgres:" + "//ada:lovelace@db/runs", "has a secret (Basic Auth Credentials)"),
    ],
)
def test_a_setting_that_names_somebody_is_found_with_its_line(text: str, why: str, tmp_path: Path) -> None:
    (name,) = private(written(tmp_path, argv=["harmless", text, "harmless"]))
    assert (name.line, name.text, name.why.startswith(why)) == (5, json.dumps(text), True)


@pytest.mark.parametrize(
    "text",
    [
        "/usr/lib/x86_64-linux-gnu/libGL.so.1.7.0, /dev/nvidiactl",
        "by NVIDIA Corporation NVIDIA H200/PCIe/SSE2",
        "RUN_DIR/logs, CACHE/assets and HOME/isaac",
        f"{HOME}USER/isaac",
        "https://example.org/a/b",
        "315.3 GB/s at 256 MiB, 3 /s",
        "malice",
        "torch==2.11.0, 580.159.04, isaaclab.envs:Env, :4096:8",
    ],
)
def test_what_names_nobody_passes(text: str, tmp_path: Path) -> None:
    assert private(written(tmp_path, argv=[text])) == []


def test_a_version_of_four_numbers_is_no_address(tmp_path: Path) -> None:
    path = written(tmp_path, machine={"versions.orbax": "0.12.0.1", "versions.jax": "0.11.2", "address": "10.1.2.3"})
    assert [name.text for name in private(path)] == ['"10.1.2.3"']


def test_a_key_of_the_format_is_no_name_and_any_other_key_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "cases")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"cases": {"desk-of-alice/rsl_rl-n1": 3}}, indent=1))
    assert [(name.line, name.text) for name in private(path)] == [(3, '"desk-of-alice/rsl_rl-n1"')]


def test_nothing_in_git_names_anybody() -> None:
    files = sorted(RESULTS.glob("*/cases/*/*.json"))
    assert len(files) > 300
    assert [str(name) for name in private_texts(published(files).content)] == []


def test_a_name_in_a_case_stops_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_campaign(tmp_path / "first")
    into = tmp_path / "results"
    into.mkdir()
    text = (source / CASE).read_text().replace('"Ubuntu 24.04.3 LTS"', '"Ubuntu 24.04.3 LTS of desk-of-alice"')
    (source / CASE).write_text(text)
    (line,) = (number for number, line in enumerate(text.splitlines(), start=1) if "of desk-of-alice" in line)
    assert session("submit", [str(source), "--into", str(into)]) == NotFitToSubmit.exit_code
    (private_text, _) = capsys.readouterr().err.splitlines()
    assert private_text.startswith(f"{CASE} line {line} names this host")
    assert list(into.iterdir()) == []
    assert not (source / TEXT_FILE).exists()
