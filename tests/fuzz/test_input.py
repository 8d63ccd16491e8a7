"""Files, command lines and variables with anything in them: each is taken or refused, with no traceback."""

import argparse
import contextlib
import gc
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest import mock

import jupytext
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from reports.sets import version as result_sets
from reports.site import build, cells, contents, publish
from suite import __main__ as suite_command
from suite.campaign import capacity, record_round, steps
from suite.campaign.bisect import read_skipped
from suite.commands import campaigns, store
from suite.env_check import container
from suite.env_check import host as system
from suite.env_check import worker as assets
from suite.env_check.graphics import manifests
from suite.env_check.nodes import slurm_nodes
from suite.env_check.request import Request
from suite.external.docker_engine import Engine
from suite.external.nvml.gpus import read_gpus
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.install import bundle_contents
from suite.install.worker import locate_worker
from suite.launch.containers import requested_gpus
from suite.launch.images.table import host_files, tag_of
from suite.launch.images.worker import image_digest_of
from suite.matrix import cases, catalog, file, plan, selection
from suite.matrix.resources import UNBOUNDED, Resources
from suite.options import declaration
from suite.options.command_line import tables_console
from suite.records.redaction import public
from suite.records.telemetry_file import read_telemetry
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import GPU_HOST
from tests.fixtures.runs.command_parsers import REPORTS, parsers
from tests.fixtures.runs.simulated_campaign import bench, no_replay
from tests.fuzz.strategies import changed, taken_or_refused, texts

type Files = dict[str, bytes]
type Target = tuple[Callable[[], st.SearchStrategy[Files]], Callable[[Path, st.DataObject], object]]

SAMPLE: Final = b'{"event":"sample","time_unix_s":1,"monotonic_s":1,"reading_time_s":0,"sampler_cpu_s":0,"host":{}}\n'
SET: Final = {
    "report.toml": b'[[set]]\nfolder = "set"\ntitle = "One"\n',
}


def files_in(folder: Path, below: str = "") -> Files:
    return {below + str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


def plan_all(matrix: str | Path, catalog_path: Path = catalog.CATALOG_PATH) -> None:
    entries = catalog.load_catalog(catalog_path)
    whole = selection.on_nodes_of(file.load_matrix(matrix, entries), 8)
    plan.plan(
        cases.expand(whole, entries, device="cuda", assets="offline"),
        resources=Resources(nnodes=1, gpus_per_node=8, cpus_per_node=64),
        available_stacks=("kitless", "ovphysx"),
        rounds=3,
        catalog=entries,
    )


@cache
def campaign() -> st.SearchStrategy[Files]:
    with TemporaryDirectory() as name:
        bench(Path(name), rounds=2)
        return st.just(files_in(Path(name)))


@no_replay()
def resume(folder: Path, data: st.DataObject) -> None:
    """Collect a run from what its ranks wrote, store what ended, or go on with the campaign."""
    (run_dir,) = folder.rglob("r0")
    if data.draw(st.booleans()):
        (run_dir / "record.json").unlink()
        record_round.record(run_dir, rounds=1, exit_code=0, started_unix_s=1.7e9)
    store.store_finished(folder) if data.draw(st.booleans()) else bench(folder, rounds=3)


COMMANDS: Final = (
    "verify .", "verify . --write-hashes", "export ./set --format csv", "export ./set --format reframe --matrix short",
    "compare ./set ./set --json", "show a page",
)  # fmt: skip


def look_at(folder: Path, data: st.DataObject) -> None:
    name, *arguments = data.draw(st.sampled_from(COMMANDS)).split()
    if name in REPORTS:
        raise SystemExit(REPORTS[name]([argument.replace(".", str(folder), 1) for argument in arguments]))
    version = result_sets.read_version(folder, name="fuzz")
    sources = contents.page_sources(version)
    page = jupytext.reads(sources[data.draw(st.sampled_from(sorted(sources)))], fmt="md:myst")
    names: dict[str, Any] = {}
    with (
        mock.patch.object(result_sets, "version_of_page", return_value=version),
        mock.patch("reports.display.figure._static_svg", return_value=""),
    ):
        for cell in page.cells:
            if cell.cell_type == "code":
                cells.output_of(cell.source, names)


def alone(content: bytes, read: Callable[[Path], object]) -> Target:
    return lambda: st.just({"file.json": content}), lambda folder, _: read(folder / "file.json")


TARGETS: Final[dict[str, Target]] = {
    "matrix": (
        lambda: st.sampled_from([{"file.toml": content} for content in files_in(file.MATRICES_PATH).values()]),
        lambda folder, _: plan_all(folder / "file.toml"),
    ),
    "catalog": alone(catalog.CATALOG_PATH.read_bytes(), partial(plan_all, "smoke")),
    "images": (
        lambda: st.just(files_in(ROOT / "containers", "containers/")),
        lambda folder, _: tag_of("kitless", project_root=folder, version="1"),
    ),
    "packages": alone(
        b"-e git+https://example.org/a@01#egg=a\ntorch==2.11.0+cu128\nlegacy===2004d\n",
        lambda path: bundle_contents.select([Requirement("torch")], pool={}, target=bundle_contents.read_freeze(path)),
    ),
    "driver": alone(
        b'{"ICD": {"library_path": "libGLX.so.0", "api_version": "1.4.312"}}',
        lambda path: manifests._read_file("vulkan", manifests.Manifest(path=str(path), source="VK_DRIVER_FILES")),
    ),
    "assets": (
        lambda: st.just({"manifest.json": b'{"format": 1, "files": {"ant.usd": {"sha256": "00", "stand_in": null}}}'}),
        lambda folder, _: assets.read_assets(folder, is_own=True),
    ),
    "capacity": alone(b'{"found": [{"first_case_id": "a/b", "trials": [{}]}]}', partial(capacity.write_answers, [])),
    "bisect": alone(b'{"case_id": "a/b", "skipped": {"1": "crashed"}}', partial(read_skipped, case_id="a/b")),
    "telemetry": alone(b'{"event": "start", "rate_hz": 1.0}\n' + SAMPLE + SAMPLE, read_telemetry),
    "results": (lambda: st.just(SET | files_in(RESULTS / "h100-x2-first", "set/")), look_at),
    "campaign": (campaign, resume),
}


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
def test_files(target: str, data: st.DataObject) -> None:
    make, read = TARGETS[target]
    files = data.draw(make())
    changed_one = data.draw(st.sampled_from(sorted(files)))
    with taken_or_refused() as folder:
        for name, content in {**files, changed_one: data.draw(changed(files[changed_one]))}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        read(folder, data)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from(sorted(parsers())))
    arguments = [name]
    for action in parsers()[name]._actions:
        is_needed = action.required or not action.option_strings or action.dest in ("matrix", "folder", "results")
        if isinstance(action, argparse._HelpAction) or not (is_needed or draw(st.integers(0, 4)) == 0):
            continue
        value = draw(texts | st.sampled_from(["smoke", *map(str, action.choices or ())]))
        inside = value.replace("..", "").lstrip("/")  # the folder of the attempt, as "/" would be searched
        arguments += [*action.option_strings[-1:], *([] if action.nargs == 0 else [inside])]
    return arguments


@given(command_lines())
@example(["plan", "--render", "kubernetes", "--image", "i", "--out", "out"])
def test_command_line(arguments: list[str]) -> None:
    """A plan is made, which is labscale's own part: the rest of ``bench`` installs and starts."""
    with (
        taken_or_refused() as folder, contextlib.chdir(folder), mock.patch("suite.campaign.state.ROOT", folder),
        mock.patch("suite.campaign.state.code_of", return_value={}),
        mock.patch.object(steps, "capture", return_value=GPU_HOST), mock.patch.object(publish, "build_sites"),
        mock.patch("suite.launch.registry.resources", return_value=UNBOUNDED), mock.patch.object(build, "build_sites"),
    ):  # fmt: skip
        if arguments[0] in REPORTS:
            raise SystemExit(REPORTS[arguments[0]](arguments[1:]))
        asked = suite_command.parse(arguments)
        if asked.command in ("plan", "bench"):
            options = campaigns.options_of(asked)
            _, *planning = steps.MANIFESTS if options.manifests.render else steps.PLAN  # the first asks a worker
            steps.execute((steps.BENCH[0], *planning), options, tables_console())
        elif asked.command == "env_check":
            declaration.read(Request, asked).arguments()


VARIABLES: Final[dict[str, Callable[[], object]]] = {
    "CUDA_VISIBLE_DEVICES": lambda: (requested_gpus("cuda", os.environ), read_gpus()),
    "DOCKER_HOST": Engine.connect,
    "HOME": lambda: (locate_worker(), host_files(os.environ)),
    "LABSCALE_CACHE": lambda: public(f"{ROOT} and {cache_root()}"),
    "LABSCALE_IMAGE_DIGEST": lambda: image_digest_of(os.environ),
    "NVIDIA_VISIBLE_DEVICES": lambda: container.read_container(os.environ),
    "SLURM_JOB_NODELIST": lambda: slurm_nodes(os.environ),
    "VK_DRIVER_FILES": lambda: manifests._search_vulkan(Path("/"), os.environ),
    "XDG_DATA_DIRS": lambda: system.read_host(os.environ, cache_dir=cache_root()),
    "__EGL_VENDOR_LIBRARY_DIRS": lambda: manifests._search_egl(Path("/"), os.environ),
    bundle_contents.VERSIONS_VARIABLE: lambda: bundle_contents.bundled_python(("newton==1.6.0",)),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@given(st.sampled_from(sorted(VARIABLES)), texts.filter(lambda text: "\0" not in text))
def test_variable(name: str, value: str) -> None:
    with taken_or_refused(), mock.patch.dict(os.environ, {name: os.fsdecode(value.encode("utf-8", "surrogateescape"))}):
        VARIABLES[name]()
    if name == "DOCKER_HOST":
        gc.collect()  # the SDK forgets its sockets
