"""How pytest shares tests out among several processes: whole files, long ones first; and what `--quick` runs.

Files whose tests share what takes long to make, or may be there only once on a machine, stay together.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling

# Fixture of the session: the files whose tests use it.
SHARED: Final = {
    "running_engine": (
        "suite/launch/images/test_build", "suite/launch/test_containers", "suite/launch/images/test_whole_image",
        "suite/launch/images/test_graphics_layer", "suite/launch/images/test_image_registry",
    ),
    "running_slurm": (
        "suite/env_check/test_nodes_in_slurm",
        "suite/launch/slurm/test_launch_slurm",
        "suite/launch/slurm/test_slurm_bench",
    ),
    "running_ray_hosts": (
        "suite/launch/nodes/test_ray",
    ),
    "running_ssh_hosts": (
        "suite/launch/nodes/test_ssh",
        "suite/launch/test_pods",
    ),
    "interrupted_campaign": ("suite/campaign/test_interrupted_campaign",),
    "hand": ("tasks/test_assets", "tasks/checks/test_physics", "tasks/checks/test_validity"),
    "parts": ("tasks/rank/test_timing", "tasks/libraries/test_lerobot"),
    "published_site": ("reports/site/test_publish", "reports/site/test_published_pages"),
    # One after another: side by side, the clocks of these trainings would time each other.
    "own_tasks": (
        "tasks/test_own_task", "tasks/test_worker", "tasks/checks/test_workload", "tasks/libraries/test_skrl_jax",
        "tasks/test_cold_start", "tasks/rank/test_determinism",
    ),
}  # fmt: skip
# The longest first, by what they took on two idle cores: no process shall be left with one of these when the others
# have ended. The first ones start together: one installs the worker and compiles its kernels, the others need neither.
LONG: Final = (
    "tasks/test_own_task", "suite/launch/images/test_build", "suite/launch/slurm/test_launch_slurm",
    "reports/site/test_publish", "suite/launch/nodes/test_ray", "tasks/libraries/test_torchrl",
    "suite/launch/nodes/test_ssh", "suite/campaign/test_interrupted_campaign", "tasks/test_assets",
    "suite/campaign/runs/test_real_turns", "suite/campaign/runs/test_uncounted",
    "tasks/libraries/test_lerobot", "suite/campaign/runs/test_faults", "tasks/libraries/test_controls",
    "reports/site/test_report", "suite/env_check/graphics/test_devices",
)  # fmt: skip
# They train nothing and start no engine, and take 6 to 20 s of a core each: they read all results in git, or run whole
# commands. `--quick` leaves them out.
LEFT_OUT_WHEN_QUICK: Final = (
    "suite/launch/test_native", "reports/submit/test_submit", "reports/verification/test_verify",
    "reports/figures/test_coverage", "fuzz/test_input", "reports/verification/test_forgeries",
    "suite/env_check/test_report", "suite/commands/test_output", "suite/campaign/runs/test_in_turns",
    "suite/install/test_install_bundle", "suite/install/test_own_workers", "reports/figures/test_figures",
    "suite/launch/test_pods", "suite/install/test_worker_packages", "reports/verification/test_figures",
    "reports/accept/test_session", "suite/install/test_worker_environment",
)  # fmt: skip
# Fixtures that train, start an engine, a cluster or a browser, build a site or compile drivers.
ENGINES: Final = frozenset(
    {
        "worker", "running_engine", "running_slurm", "running_ssh_hosts", "running_ray_hosts", "browser", "built_site",
        "published_site", "graphics_packages",
    }
)  # fmt: skip
_SHARES: Final = {file: fixture for fixture, files in SHARED.items() for file in files}


def file_of(nodeid: str) -> str:
    """The file of a test as the tables name it: below tests/, without its ending."""
    return nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist's classes are untyped
    def _split_scope(self, nodeid: str) -> str:
        file = file_of(nodeid)
        return _SHARES.get(file, file)


def pytest_configure() -> None:
    """Let threads of ranks sleep when they wait: those that spin take the cores of what runs beside, for twice as long.

    For tests alone; a campaign takes the library's default.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles:
    return WholeFiles(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    outside = misplaced(items)
    if outside:
        raise pytest.UsageError(f"Tests that share a fixture of the session: name their files in SHARED: {outside}")
    if config.getoption("--quick"):
        left_out = [item for item in items if takes_long(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not takes_long(item)]
    order = {file: place for place, file in enumerate((*LONG, *LEFT_OUT_WHEN_QUICK))}
    items.sort(key=lambda item: order.get(file_of(item.nodeid), len(order)))


def misplaced(items: Sequence[pytest.Item]) -> list[str]:
    """Files with tests of a shared fixture that the table does not have."""
    return sorted(
        {
            f"{file_of(item.nodeid)}: {fixture}"
            for item in items
            for fixture in SHARED
            if fixture in getattr(item, "fixturenames", ()) and _SHARES.get(file_of(item.nodeid)) != fixture
        }
    )


def takes_long(item: pytest.Item) -> bool:
    """Whether a test trains, needs one of ``ENGINES``, or stands in a file that takes long."""
    has_engine = "worker" in item.keywords or not ENGINES.isdisjoint(getattr(item, "fixturenames", ()))
    return has_engine or file_of(item.nodeid) in LEFT_OUT_WHEN_QUICK
