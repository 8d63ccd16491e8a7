"""The configurations of Explore: which are there, from which versions, and what each has."""

import json
import re
from dataclasses import replace
from pathlib import Path

from reports.data.words import hardware_text
from reports.export.downloads import DATA_FOLDER, files
from reports.pages.explore import data, main, opening, points
from reports.sets.manifest import Contributor
from reports.sets.version import Version, read_version
from suite.schema.record import CaseResult
from tests.fixtures.results.committed_results import newest_version
from tests.fixtures.results.generated_results import (
    emulated,
    failed_result,
    full_results,
    make_case,
    node_results,
    smoke_results,
    sweep_results,
    write_results,
)


def version_of(results: list[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="v")


def test_samples_of_an_older_version_are_in_its_own_site() -> None:
    offered = {version.name: {f"{DATA_FOLDER}/{name}" for name in files(version)} for version in newest_version().older}
    addresses = re.findall(r'<a href="([^"]+)">samples</a>', main(newest_version()).markup)
    older = [address.removeprefix("../2026.11/") for address in addresses if address.startswith("../2026.11/")]
    assert len(older) > 100
    assert set(older) <= offered["2026.11"]


def test_what_did_not_complete_on_gpus_is_not_there(tmp_path: Path) -> None:
    reduced = failed_result(make_case(device="cuda", num_envs_global=256), outcome="crashed", reason="generated")
    keys = [point.key for point in points(version_of([*full_results(), *smoke_results(), reduced], tmp_path))]
    assert len(keys) == 16
    assert not any("-cpu-" in key for key in keys)


def test_a_line_joins_what_differs_in_the_axis_alone(tmp_path: Path) -> None:
    swept = data(points(version_of(sweep_results(), tmp_path / "sweep")))["points"]
    assert len({point["lines"][0] for point in swept}) == 1
    assert len({point["lines"][1] for point in swept}) == 4
    scaled = data(points(version_of(full_results(), tmp_path / "full")))["points"]
    assert len({point["lines"][1] for point in scaled}) == 4


def test_simulated_nodes_and_contributors_are_named(tmp_path: Path) -> None:
    *on_one_node, on_two = node_results()
    version = version_of([*on_one_node, emulated(on_two)], tmp_path)
    theirs = replace(version.sets[0], contributor=Contributor(name="Lab", link=None))
    shown = points(replace(version, sets=(theirs,)))
    assert sorted(hardware_text(point.row) for point in shown) == [
        "1 x Generated Accelerator",
        "4 x Generated Accelerator",
        "4 x Generated Accelerator, 2 simulated nodes",
    ]
    assert all(point.machine.endswith(", by Lab") for point in shown)


def test_the_script_ends_nothing_and_without_a_gpu_there_is_a_sentence(tmp_path: Path) -> None:
    version = version_of(full_results(), tmp_path / "full")
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', main(version).markup)
    assert "<" not in text
    assert json.loads(text)["points"] == data(points(version))["points"]
    assert "16 configurations of Ant and Cartpole" in opening(version).text
    none = version_of(smoke_results(), tmp_path / "none")
    assert "nothing to explore" in opening(none).text
    assert main(none).markup == ""
