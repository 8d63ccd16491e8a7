"""How tests are shared out when pytest runs in several processes: whole files, long ones first.

Files whose tests share what takes long to make, or may be there only once on a machine, stay together.
"""

import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling

# Fixture of the session: the files whose tests use it.
SHARED: Final = {
    "running_engine": (
        "test_build", "test_container", "test_container_refusals", "test_container_slow", "test_container_worker",
        "test_graphics_layer", "test_registry",
    ),
    "running_slurm": ("test_env_check_slurm", "test_launch_slurm", "test_slurm_bench"),
    "running_ssh_hosts": ("test_launch_ssh", "test_pods", "test_ssh_bench"),
    "interrupted_campaign": ("test_campaign", "test_campaign_repeats", "test_cut_off"),
    "hand": ("test_assets", "test_cuda_graph", "test_validity"),
    "published_site": ("test_publish", "test_published_pages"),
    "own_tasks": ("test_own_task", "test_worker", "test_workload"),
}  # fmt: skip
# The longest first, by what they took on two idle cores: no process shall be left with one of these when the others
# have ended. The first ones start together: one installs the worker and compiles its kernels, another needs neither.
LONG: Final = (
    "test_own_task", "test_build", "test_slurm_bench", "test_publish", "test_campaign", "test_ssh_bench", "test_assets",
    "test_control", "test_faults", "test_report", "test_native", "test_fuzz", "test_env_check_vulkan",
    "test_runtime", "test_large_results",
)  # fmt: skip
_SHARES: Final = {file: fixture for fixture, files in SHARED.items() for file in files}


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist's classes are untyped
    def _split_scope(self, nodeid: str) -> str:
        file = PurePath(nodeid.partition("::")[0]).stem
        return _SHARES.get(file, file)


def pytest_configure() -> None:
    """Let threads of ranks sleep when they wait: those that spin take the cores of what runs beside, for twice as long.

    For tests alone; a campaign takes the library's default.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles:
    return WholeFiles(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    outside = misplaced(items)
    if outside:
        raise pytest.UsageError(f"Tests that share a fixture of the session: name their files in SHARED: {outside}")
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def misplaced(items: Sequence[pytest.Item]) -> list[str]:
    """Files with tests of a shared fixture that the table does not have."""
    return sorted(
        {
            f"{item.path.stem}: {fixture}"
            for item in items
            for fixture in SHARED
            if fixture in getattr(item, "fixturenames", ()) and _SHARES.get(item.path.stem) != fixture
        }
    )
