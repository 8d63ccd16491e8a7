"""Whether nodes are alike, and which report of several is shown. Real hosts answer in ``test_ssh``."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from suite.env_check.check import Check, Verdict
from suite.env_check.report import Report
from suite.launch.nodes.facts import main, worst
from tests.suite.env_check.test_nodes import report


@pytest.mark.parametrize(
    ("reports", "lines"),
    [
        ((report("n1"), report("n2")), []),
        (
            (report("n1"), report("n2", driver="570.1"), "", None),
            [
                "node-2: the report is empty; last: ImportError: no suite",
                "node-3: the report is empty; last: no message",
                "driver: 580.65.06 on n1; 570.1 on n2",
            ],
        ),
        (  # machines of one cloud image may all be called localhost
            (report("localhost"), report("localhost", driver="570.1")),
            ["driver: 580.65.06 on localhost; 570.1 on localhost (node-1)"],
        ),
    ],
)
def test_every_difference_between_nodes_is_a_line(
    reports: Sequence[str | None], lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"node-{index}.json" for index in range(len(reports))]
    for path, text in zip(paths, reports, strict=True):
        if text is not None:
            path.write_text(text)
    (tmp_path / "node-2.txt").write_text("one\nImportError: no suite\n")
    assert main(["compare", *map(str, paths)]) == bool(lines)
    assert capsys.readouterr().out.splitlines() == (lines or [""])


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
