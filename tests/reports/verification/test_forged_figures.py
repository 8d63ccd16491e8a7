"""Published figures forged by somebody who writes all hashes again: ``verify`` names each forgery."""

import csv
import io
import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from reports.sets import figures_file
from reports.verification.figures import published
from reports.verification.finding import MEND_FIRST
from reports.verification.first import verify
from reports.verification.samples.stored import read_set
from tests.fixtures.results.damaged_results import damage, rounds, sentences, set_item, write_all_hashes
from tests.fixtures.results.forged_version import SHADOW, SMALL, Forgery, forge, write_version

ROW = "cartpole-per-gpu/rl_games-kitless-n8192-1x2"


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_version(tmp_path_factory.mktemp("original") / "reports" / "results" / "2026.11")


@pytest.fixture
def version(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original.parents[2], tmp_path, dirs_exist_ok=True)
    return tmp_path / "reports" / "results" / "2026.11"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("stats.median", 0.5, "stats.median is 0.5, expected "),
        ("stats.data", [0.5, 0.5, 0.5], "stats.data[0] is 0.5"),
        ("extra_info.total_fps", [1e6, 1e6, 1e6], "extra_info.total_fps[0] is 1000000.0"),
        ("extra_info.frames_per_iteration", 1, "extra_info.frames_per_iteration is 1, expected 65536"),
        ("extra_info.statistic", "the best", "extra_info.statistic is 'the best'"),
    ],
)
def test_a_forged_figure_of_a_document_is_named(version: Path, name: str, value: Any, words: str) -> None:
    path = version / SHADOW
    document = json.loads(path.read_text())
    part, key = name.split(".")
    document["benchmarks"][0][part][key] = value
    path.write_text(json.dumps(document))
    write_all_hashes(version)
    assert any(words in sentence for sentence in sentences(version))


def of_row(name: str, value: Any) -> Forgery:
    return lambda d: set_item(d["sets"]["h200-x2-per-gpu"]["configurations"][ROW], name, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_row("frames_per_s", 1e6), f"{ROW}.frames_per_s is 1000000.0, expected"),
        (of_row("seconds_per_iteration", 0.1), f"{ROW}.seconds_per_iteration is 0.1, expected"),
        (of_row("efficiency", 0.99), f"{ROW}.efficiency is 0.99, expected"),
        (of_row("speedup", None), f"{ROW}.speedup is None, expected"),
        (of_row("baseline", ROW), f"{ROW}.baseline is {ROW}, expected cartpole-per-gpu/rl_games-kitless-n4096-1x1"),
        (of_row("runs", 10), f"{ROW}.runs is 10, expected 3"),
        (of_row("verdict", "perfect"), f"{ROW}.verdict is perfect, expected at least 80 % or below 80 % or"),
        (lambda d: d["sets"]["h200-x2-per-gpu"]["configurations"].pop(ROW), "the list of configurations is"),
        (lambda d: d["sets"].pop("h200-x2-shadow"), "figures.json: the list of sets is"),
    ],
)
def test_a_forged_figure_of_the_version_is_named(version: Path, change: Forgery, words: str) -> None:
    forge(version, "figures.json", change)
    said = sentences(version)
    assert any(words in sentence for sentence in said), said


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("interval_s", [0.1, 0.2], "interval_s[0] is 0.1, expected"),
        ("efficiency_interval", [0.99, 1.0], "efficiency_interval[0] is 0.99, expected"),
        ("speedup_interval", None, "speedup_interval is None, expected"),
        ("verdict", "above ideal", "verdict is above ideal, expected"),
    ],
)
def test_a_forged_interval_or_verdict_is_named(version: Path, name: str, value: Any, words: str) -> None:
    sets = {path.parent.name: read_set(path.parent, root=version) for path in version.glob("*/plan.json")}
    right = {"sets": {folder: published.figures_of(one) for folder, one in sets.items()}}
    (version / "figures.json").write_text(json.dumps(right))
    (version / "configurations.csv").unlink()
    write_all_hashes(version)
    assert sentences(version) == []
    forge(version, "figures.json", of_row(name, value))
    assert any(f"{ROW}.{words}" in sentence for sentence in sentences(version))


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("configurations.csv", "h200-x2-per-gpu,,", "h200-x2-per-gpv,,", "configurations.csv: the list of its cases"),
        (
            "../../../README.md",
            "training",
            "0.99 training",
            "README.md: the text before the link to h200-x2-per-gpu",
        ),
        ("../../../README.md", "h200-x2-per-gpu", "h200-x9", "README.md: a link is to 2026.11/h200-x9, expected to a"),
        ("../../../README.md", "<!-- begin", "<!-- start", "README.md: what is made by a program is without a figure"),
    ],
)
def test_a_forged_table_is_named(version: Path, name: str, old: str, new: str, words: str) -> None:
    path = version / name
    path.write_text(path.read_text().replace(old, new))
    write_all_hashes(version)
    said = sentences(version)
    assert any(words in sentence for sentence in said), said


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda d: rounds(d)[0].update(started_utc="once"), id="a field that is not readable"),
        pytest.param(lambda d: rounds(d)[0].update(ranks=[]), id="a round without ranks"),
    ],
)
def test_while_records_are_rejected_figures_are_not_compared_and_the_finding_says_what_to_mend(
    version: Path, change: Forgery
) -> None:
    figures_file.write(version)
    for name in (SHADOW, SMALL):
        damage(version / name, change)
    write_all_hashes(version)
    found = [finding for finding in verify(version).findings if finding.next_step == MEND_FIRST]
    assert [finding.where for finding in found] == ["figures.json", "configurations.csv"]
    assert {finding.got for finding in found} == {
        f"not made (records are rejected in 2 case files: {SHADOW} and 1 more)"
    }


def test_a_figure_in_the_readme_is_checked_with_the_version_that_its_link_names(version: Path) -> None:
    readme = version.parents[2] / "README.md"
    text = readme.read_text()
    (said,) = [line for line in text.splitlines() if line.startswith("- ")]
    older = version.parent / "2026.10"
    older.mkdir()
    (older / "report.toml").write_text("")
    readme.write_text(text.replace(said, f"{said}\n{said.replace('2026.11', older.name).replace('%', '99.9 %')}"))
    assert sentences(version) == []
    readme.write_text(text.replace(said, f"{said}\n{said.replace('%', '99.9 %')}"))
    (found,) = sentences(version)
    assert "the text before the link to h200-x2-per-gpu" in found


def test_a_forged_rate_in_the_table_of_all_cases_is_named(version: Path) -> None:
    with (version / "configurations.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    lines[0]["total_fps"] = "1.0"
    with (version / "configurations.csv").open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    write_all_hashes(version)
    (said,) = sentences(version)
    assert ".total_fps is 1.0, expected" in said


def test_every_figure_that_was_measured_besides_is_computed_again(version: Path) -> None:
    document = json.loads((version / "figures.json").read_text())
    sets = document["sets"].items()
    rows = {f"{of}: {case}": row for of, one in sets for case, row in one["configurations"].items()}
    names = [(of, name) for of, row in rows.items() for name, value in row["measured"].items() if value]
    for of, name in names:
        rows[of]["measured"][name] *= 1.001
    (version / "figures.json").write_text(json.dumps(document))
    (version / "configurations.csv").write_text(
        forged_table((version / "configurations.csv").read_text(), [name for _, name in names])
    )
    write_all_hashes(version)
    said = sentences(version)
    for of, name in names:
        assert sum(f"{of}.measured.{name} is" in sentence for sentence in said) == 1
        assert sum(f"{of}.{name} is" in sentence for sentence in said) == 1
    assert len({name for _, name in names}) > 30


def forged_table(text: str, columns: Collection[str]) -> str:
    """Each number in these columns, by a thousandth more."""
    lines = list(csv.DictReader(text.splitlines()))
    for line in lines:
        line |= {name: str(float(line[name]) * 1.001) for name in columns if line[name]}
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",kitless,cuda,", ",ovphysx,cuda,", "stack is ovphysx, expected kitless"),
        ("h200-x2-per-gpu,,", "h200-x2-per-gpu,Somebody,", "contributed_by is Somebody, expected None"),
        (",nvlink,", ",pcie,", "interconnect is pcie, expected nvlink"),
        (",1x2,2,", ",1x2,4,", "world_size is 4.0, expected 2"),
        ("rank_skew", "skew", "skew is "),
    ],
)
def test_each_column_of_the_table_of_all_cases_is_checked(version: Path, old: str, new: str, words: str) -> None:
    path = version / "configurations.csv"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    write_all_hashes(version)
    assert any(words in sentence for sentence in sentences(version))
