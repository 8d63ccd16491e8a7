"""Hooks of the replay session. They copy everything except samples from the draft into the document.

The draft is a JSON object written by ``suite.records.store``: ``case_id series samples_s extra_info machine_info
commit_info labscale``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

DRAFT: pytest.StashKey[dict[str, Any]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--labscale-draft", required=True, help="the JSON file with the samples to replay")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[DRAFT] = json.loads(Path(config.getoption("--labscale-draft")).read_text(encoding="utf-8"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The case id in the test's id makes fullname, pytest-benchmark's key for comparisons, stable for each case.
    if "case_id" in metafunc.fixturenames:
        metafunc.parametrize("case_id", [metafunc.config.stash[DRAFT]["case_id"]])


@pytest.fixture
def draft(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.config.stash[DRAFT]


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    machine_info["cpu"].pop("flags", None)  # about 120 words that do not matter for the result
    machine_info["node"] = "redacted"  # results are published
    machine_info.update(config.stash[DRAFT]["machine_info"])


def pytest_benchmark_generate_commit_info(config: pytest.Config) -> dict[str, Any]:
    # The commit of the suite that measured, not of the current folder's repository.
    commit_info: dict[str, Any] = config.stash[DRAFT]["commit_info"]
    return commit_info


def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    output_json["labscale"] = config.stash[DRAFT]["labscale"]
