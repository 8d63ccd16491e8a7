"""The command that measures a case again."""

import re
import shlex
from pathlib import Path

from reports.sets.planned import planned_cases
from reports.sets.version import read_version
from reports.topics.data.again import again
from reports.topics.data.downloads import DATA_FOLDER, files
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import make_case, make_result, on_gpus, write_results


def test_every_published_case_names_its_matrix_if_there_is_one_and_its_raw_file() -> None:
    version = committed_version()
    shown = again(version)
    rows = [row.split("\t") for row in shown.text.splitlines() if row.count("\t") == 3][1:]
    assert len(rows) > 250
    commands = {row[0]: shlex.split(row[1]) for row in rows if row[1] != "n/a"}
    assert len(commands) > len({row[0] for row in rows}) / 2
    ids: dict[str, set[str]] = {}
    for case_id, (_, matrix, _, asked, _, rounds) in commands.items():
        if matrix not in ids:
            ids[matrix] = {case.case_id for device in ("cuda", "cpu") for case in planned_cases(matrix, device=device)}
        assert asked == case_id
        assert case_id in ids[matrix]
        assert int(rounds) > 0
    offered = {f"{DATA_FOLDER}/{name}" for group in files(version).values() for name in group}
    links = re.findall(r'href="([^"]+)"', shown.markup)
    assert len(links) == len(rows)
    assert set(links) <= offered


def test_a_case_of_no_matrix_has_no_command(tmp_path: Path) -> None:
    results = on_gpus([make_result(make_case("ant-of-somebody"), 0.5)])
    shown = again(read_version(write_results(results, tmp_path), name="v")).text
    assert "n/a\t0123456789ab\t" in shown
