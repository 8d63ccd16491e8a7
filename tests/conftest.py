"""Fixtures that several test modules share."""

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from suite.install.worker import Worker, provision_own_worker, provision_worker
from suite.matrix.own_worker import OwnWorker, own_worker_of
from suite.records import store
from suite.schema.record import Case, CaseResult, Environment
from tests.fixtures.results.generated_results import make_case as generated_case
from tests.fixtures.runs.real_runs import warm_kernels

pytest_plugins = [
    "tests.at_the_same_time",
    "tests.fixtures.machines.debian_packages",
    "tests.fixtures.runs.bench_runs",
    "tests.fixtures.machines.container_engine",
    "tests.fixtures.machines.container_runs",
    "tests.fixtures.runs.own_task_runs",
    "tests.fixtures.runs.published_site",
    "tests.fixtures.results.rank_events",
    "tests.fixtures.machines.slurm_cluster",
    "tests.fixtures.stand_ins.small_bundles",
    "tests.fixtures.machines.ray_hosts",
    "tests.fixtures.machines.ssh_hosts",
    "tests.fixtures.runs.trained_runs",
    "tests.fixtures.runs.worker_probes",
]

CaseMaker = Callable[..., Case]
_CASE = generated_case(
    world_size=2, num_envs_global=64, iterations=3, minibatch_rule="fixed_updates", minibatch_size=128,
    optimiser_steps=20,
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow",
        action="store_true",
        help="also build an image whole and train in it, and every fault of a cluster (20 min, 30 GB)",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="only what neither trains nor starts an engine, a cluster, a browser or a site's build, and takes no time",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="runs only with --slow"))


@pytest.fixture(scope="session")
def make_case() -> Callable[..., Case]:
    """A small two-rank case of three iterations, with the given fields changed."""
    return lambda **changes: replace(_CASE, **changes)


@pytest.fixture(scope="session")
def environment() -> Environment:
    return Environment(host_label="desk", cpu_model=None, num_cpus=2, memory_gb=25.0, os=None, kernel=None)


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Worker:
    """The worker environment of the pins, installed on first use (7 GB, some minutes) and kept in the cache."""
    prepared_worker = provision_worker(on_message=print)
    warm_kernels(prepared_worker, tmp_path_factory.mktemp("warm"))
    return prepared_worker


@pytest.fixture(scope="session")
def worker_of(worker: Worker) -> Callable[[Case], Worker]:
    """Give the worker that a case needs. One with the same Warp and Newton is given the kernels that are there."""

    @cache
    def prepared(own: OwnWorker | None) -> Worker:
        if own is None:
            return worker
        prepared_worker = provision_own_worker(own, worker, on_message=print)
        return prepared_worker if own.packages else replace(prepared_worker, cache_dir=worker.cache_dir)

    return lambda case: prepared(own_worker_of(case))


@pytest.fixture
def plain_case_files(monkeypatch: pytest.MonkeyPatch) -> dict[Path, CaseResult]:
    """Stored cases kept in memory: a pytest session for each would take most of the time of tests that store many."""
    written: dict[Path, CaseResult] = {}

    def write_cases(results: Mapping[Path, CaseResult]) -> None:
        for path, result in results.items():
            assert not path.exists(), "stored twice"
            written[path] = result
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    monkeypatch.setattr(store, "write_cases", write_cases)
    monkeypatch.setattr(store, "read_case", lambda path: written[path])
    return written


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where a shell started the tests in its background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
