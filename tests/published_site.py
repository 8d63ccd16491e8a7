"""The site of two versions from GENERATED results, and a Chromium to look at it with: made once for all tests."""

import functools
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from reports import publish as publishing
from reports.import_command import import_bundles
from suite.schema.record import CaseResult
from tests.browser import Browser, browser_program
from tests.debian_packages import install_packages
from tests.generated_results import (
    full_results,
    node_results,
    on_gpus,
    smoke_results,
    stack_results,
    write_results,
)
from tests.test_inside import with_telemetry
from tests.test_pairs_of_cases import emulated

OLDER: Final = "2026.9"
NEWER: Final = "2026.11"
BUNDLES: Final = Path(__file__).parent / "golden" / "isaaclab_1.4"
SERIES: Final = "series-cartpole-strong.html"


@pytest.fixture(scope="session")
def versions_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_results(on_gpus(smoke_results()), folder / OLDER / "desk")
    write_results(full_results(), folder / NEWER / "desk")
    write_results(smoke_results()[:4], folder / NEWER / "laptop")
    write_results(long_named_results(), folder / NEWER / "nodes-and-stacks")
    import_bundles(sorted(BUNDLES.glob("*.json")), folder / NEWER / "imported")
    (folder / NEWER / "report.toml").write_text('[[set]]\nfolder = "imported"\ncontributed_by = "Example Lab"\n')
    return folder


@pytest.fixture(scope="session")
def published_site(versions_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "site"
    assert publishing.publish(versions_results, out) == (NEWER, OLDER)
    return out


@pytest.fixture(scope="session")
def site_address(published_site: Path) -> Iterator[str]:
    """Where a server on this machine has the site, below a folder as GitHub Pages has it."""
    handler = functools.partial(_QuietHandler, directory=published_site.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{published_site.name}"
        server.shutdown()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if browser_program() is None and os.geteuid() == 0:
        install_packages(["chromium"])
    if browser_program() is None:
        pytest.skip("no Chromium is installed")
    with Browser.started(tmp_path_factory.mktemp("profile")) as started:
        yield started


def long_named_results() -> list[CaseResult]:
    """Results of emulated nodes and of stacks, whose names are the longest there are, with telemetry."""
    one, four, spread = node_results()
    return [
        replace(
            result,
            rounds=tuple(with_telemetry(record, frames_per_joule=2e3, memory_gb=8.0) for record in result.rounds),
        )
        for result in (*stack_results(), one, four, emulated(spread))
    ]


def pages_of(site: Path) -> list[Path]:
    """Every page of the newer version, and those of the older whose kind it does not have: it is of one set alone."""
    of_one_set = [site / OLDER / name for name in ("index.html", SERIES, "machines.html")]
    return [*of_one_set, *sorted((site / NEWER).glob("*.html"))]
