from pathlib import Path

import pytest

from suite.launch.nodes.comparison import main
from tests.suite.env_check.test_nodes import report


def write(folder: Path, *reports: str) -> list[str]:
    paths = [folder / f"node-{index}.json" for index in range(len(reports))]
    for path, text in zip(paths, reports, strict=True):
        path.write_text(text, encoding="utf-8")
    return [str(path) for path in paths]


def test_nodes_that_are_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(write(tmp_path, report("n1"), report("n2"))) == 0
    assert capsys.readouterr().out.strip() == ""


def test_every_difference_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write(tmp_path, report("n1"), report("n2", driver="570.1"), "")
    (tmp_path / "node-2.txt").write_text("one\nImportError: no suite\n")
    assert main([*paths, str(tmp_path / "node-3.json")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "node-2: the report is empty; last: ImportError: no suite",
        "node-3: the report is empty; last: no message",
        "driver: 580.65.06 on n1; 570.1 on n2",
    ]


def test_nodes_that_call_themselves_alike_are_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Machines of one cloud image may all be called localhost."""
    assert main(write(tmp_path, report("localhost"), report("localhost", driver="570.1"))) == 1
    assert capsys.readouterr().out.splitlines() == ["driver: 580.65.06 on localhost; 570.1 on localhost (node-1)"]
