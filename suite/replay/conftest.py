"""Hooks of the replay session. They read the drafts, and keep the storing machine out of the document.

The drafts are a JSON list written by ``suite.replay.session``, an object for each case: ``case_id series samples_s
extra_info``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

DRAFTS: pytest.StashKey[dict[str, dict[str, Any]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--labscale-drafts", required=True, help="the JSON file with the samples to replay")


def pytest_configure(config: pytest.Config) -> None:
    drafts = json.loads(Path(config.getoption("--labscale-drafts")).read_text(encoding="utf-8"))
    config.stash[DRAFTS] = {draft["case_id"]: draft for draft in drafts}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The case id in the test's id makes fullname, pytest-benchmark's key for comparisons, stable for each case.
    drafts = metafunc.config.stash[DRAFTS]
    metafunc.parametrize("case_id", list(drafts))


@pytest.fixture
def draft(request: pytest.FixtureRequest, case_id: str) -> dict[str, Any]:
    return request.config.stash[DRAFTS][case_id]


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    machine_info["cpu"].pop("flags", None)  # about 120 words that do not matter for the result
    machine_info["node"] = "redacted"  # results are published


def pytest_benchmark_generate_commit_info() -> dict[str, Any]:
    return {}  # the current folder's repository did not measure
