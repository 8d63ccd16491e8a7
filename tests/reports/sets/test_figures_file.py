"""``figures.json``: what a version publishes of every case, and what it leaves out."""

import json
from pathlib import Path

import pytest

from reports.sets.figures_file import FILE, main, read_figures
from tests.fixtures.results.generated_results import make_case, make_result, on_gpus, write_results


@pytest.fixture
def version(tmp_path: Path) -> Path:
    results = [make_result(make_case(), 0.5, 1.0, 2.0), make_result(make_case(world_size=2), 0.55, 0.5, 0.605)]
    write_results(on_gpus(results), tmp_path / "gpus")
    write_results(results, tmp_path / "cpus")
    return tmp_path


def test_a_case_has_its_figure_its_runs_and_its_efficiency(version: Path) -> None:
    assert main([str(version)]) == 0
    cases = read_figures(version)["gpus"]["configurations"]
    one, two = cases.values()
    assert (one["runs"], one["seconds_per_iteration"], one["efficiency"]) == (3, pytest.approx(1.0), 1.0)
    assert two["baseline"] == next(iter(cases))
    assert two["speedup"] == pytest.approx(1.0 / 0.55)
    assert two["efficiency"] == pytest.approx(1.0 / 0.55 / 2)
    assert two["verdict"] is not None
    assert len((version / FILE).read_text().splitlines()) < 20  # one line a case


def test_a_set_without_speeds_has_no_efficiency(version: Path) -> None:
    assert main([str(version)]) == 0
    for row in json.loads((version / FILE).read_text())["sets"]["cpus"]["configurations"].values():
        assert row["seconds_per_iteration"] is not None
        assert (row["speedup"], row["efficiency"], row["baseline"], row["verdict"]) == (None, None, None, None)
