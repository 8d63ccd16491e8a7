"""Whether nodes are alike, and which report of several is shown. Real hosts answer in ``test_ssh``."""

from pathlib import Path

import pytest

from suite.env_check.check import Check, Verdict
from suite.env_check.report import Report
from suite.launch.nodes.facts import main, worst
from tests.suite.env_check.test_nodes import report


def write(folder: Path, *reports: str) -> list[str]:
    paths = [folder / f"node-{index}.json" for index in range(len(reports))]
    for path, text in zip(paths, reports, strict=True):
        path.write_text(text, encoding="utf-8")
    return [str(path) for path in paths]


def test_nodes_that_are_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *write(tmp_path, report("n1"), report("n2"))]) == 0
    assert capsys.readouterr().out.strip() == ""


def test_every_difference_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write(tmp_path, report("n1"), report("n2", driver="570.1"), "")
    (tmp_path / "node-2.txt").write_text("one\nImportError: no suite\n")
    assert main(["compare", *paths, str(tmp_path / "node-3.json")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "node-2: the report is empty; last: ImportError: no suite",
        "node-3: the report is empty; last: no message",
        "driver: 580.65.06 on n1; 570.1 on n2",
    ]


def test_nodes_that_call_themselves_alike_are_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Machines of one cloud image may all be called localhost."""
    assert main(["compare", *write(tmp_path, report("localhost"), report("localhost", driver="570.1"))]) == 1
    assert capsys.readouterr().out.splitlines() == ["driver: 580.65.06 on localhost; 570.1 on localhost (node-1)"]


def report_of(host: str, verdict: Verdict) -> Report:
    fault, repair = (None, None) if verdict == "ok" else ("host_busy", "wait")
    check = Check(
        name="cpu_load", feature="host", verdict=verdict, found="x", wanted="y", fault=fault, repair=repair,
        evidence=None,
    )  # fmt: skip
    return Report(host=host, stack="kitless", device="cpu", needed=frozenset({"host"}), checks=(check,), duration_s=1.0)


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [
        (("ok", "ok"), "n0"),
        (("ok", "warning", "warning"), "n1"),
        (("warning", "ok", "failure"), "n2"),
        (("failure", "failure"), "n0"),
    ],
)
def test_what_one_host_alone_finds_is_shown(verdicts: tuple[Verdict, ...], shown: str) -> None:
    assert worst([report_of(f"n{number}", verdict) for number, verdict in enumerate(verdicts)]).host == shown
