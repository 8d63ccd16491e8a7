"""Files of a stored set and of a campaign that was cut off, one of which is not as it was written."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest import mock

import jupytext
from hypothesis import given
from hypothesis import strategies as st

from reports.display import figure
from reports.sets import version as result_sets
from reports.site.cells import output_of
from reports.site.pages import page_sources
from reports.topics.data import export
from reports.topics.history import command as compare_command
from reports.verification import command as verify
from suite.campaign import cases
from suite.campaign.bisect.answer import read_skipped
from suite.campaign.capacity import search as capacity_search
from suite.campaign.folder import Folder, require_identity
from suite.campaign.identity import opened
from suite.campaign.planning.registered_task import measured_costs
from suite.campaign.record_round import Ended, record
from suite.campaign.runs import pair_files, upstream
from suite.campaign.schedule import blocks_to_run, known_rounds
from suite.commands.store import store_finished
from suite.external.nvml.values import GpuReading
from suite.files.paths import ROOT
from suite.launch import LaunchResult
from suite.records import store
from suite.records.collect import collect
from suite.records.telemetry.file import HostReading, RankReading, Sample, TelemetryStart, line_of, telemetry_path
from suite.schema.record import Outcome
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_record, make_result
from tests.fixtures.results.rank_events import end, head, iterations
from tests.fixtures.runs.simulated_campaign import campaign_of
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.fuzz.strategies import changed_bytes, changed_json, changed_toml, taken_or_refused

ONE: Final = make_case(device="cuda")
NODES: Final = make_case(world_size=2, nnodes=2, device="cuda")
IDENTITY: Final = {"matrix": "smoke", "seed": 42, "gpus": ["H200"], "rounds": 2, "precision": None, "max_rounds": None}
ENV_CHECK: Final = ROOT / "reports/results/2026.11/env_check/h200-one.json"
SETS: Final = (
    '[[set]]\nfolder = "set"\ntitle = "One"\ncontributed_by = "Example Lab"\nlink = "https://example.org/robots"\n'
)
ENDED: Final = LaunchResult(
    exit_code=0, ended_by=None, started_utc="2026-11-21T10:00:00+00:00", wall_time_s=60.0, nodes=("head", "other")
)


def write_version(folder: Path) -> None:
    """Write a set of two cases with repeats and a pair, between ``report.toml`` and what env_check found."""
    results = [make_result(ONE, 0.5, 0.51, 0.505), make_result(make_case(world_size=2, device="cuda"), 0.3)]
    store.write_cases({Folder(root=folder / "set").case_path(result.case): result for result in results})
    beside = upstream.Pair(case_id=ONE.case_id, round=0, ours_s=0.5, theirs_s=0.5, theirs_wall_s=60.0, library_s=None)
    upstream.write_pairs([beside], folder / "set" / "upstream.json")
    (folder / "report.toml").write_text(SETS, encoding="utf-8")
    (folder / "env_check").mkdir()
    (folder / "env_check" / "a.json").write_bytes(ENV_CHECK.read_bytes())


def write_campaign(folder: Path) -> None:
    """Write two rounds of three cases: the last round of one is missing, and one failed."""
    for case in (make_case(device="cuda", rl_library="rl_games"), NODES, make_case("ant-weak", device="cuda")):
        for index in range(1 if case == NODES else 2):
            outcome: Outcome = "crashed" if index and case.series == "ant-weak" else "completed"
            path = Folder(root=folder).record_path(case, index)
            store.write_record(make_record(case, index=index, outcome=outcome, reason="x"), path)
            (path.parent / "case.json").write_text(json.dumps(asdict(case)), encoding="utf-8")
    (folder / "campaign.json").write_text(json.dumps(IDENTITY), encoding="utf-8")
    (folder / "capacity.json").write_text('{"min_rise": 0.05, "found": [{"first_case_id": "a/b", "trials": [{}]}]}')
    (folder / "bisect.json").write_text('{"case_id": "a/b", "skipped": {"1.6.0": "crashed"}, "steps": []}')


def write_run(folder: Path) -> None:
    """Write what the two ranks of a run and the samplers of their nodes leave."""
    (folder / "case.json").write_text(json.dumps(asdict(NODES)), encoding="utf-8")
    for rank in range(2):
        offset = {"event": "clock_offset", "when": "start", "offset_s": 0.1, "bound_s": 1e-4, "wall_offset_s": 0.0}
        check = {"name": "cameras", "feature": "rendering", "verdict": "ok", "found": "2 of 2", "fault": None}
        events = [
            *head(rank), *([offset] * rank), {"event": "clock", "zero_monotonic_s": 100.0},
            {"event": "workload", "workload": {"task": NODES.task}}, *iterations(NODES.iterations, start_s=0.5),
            {"event": "validity", "checks": [check]}, *end(),
        ]  # fmt: skip
        (folder / f"rank-{rank}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        samples = (
            Sample(
                time_unix_s=1000 + 0.1 * index, monotonic_s=99 + 0.1 * index, reading_time_s=0.001, sampler_cpu_s=0.001,
                gpus=(GpuReading(index=0, power_w=300.0, energy_j=30.0 * index),),
                ranks=(RankReading(rank=rank, cpu_percent=100.0, memory_gb=2.0),),
                host=HostReading(cpu_percent=50.0, stolen_percent=1.0, others_percent=2.0, load=1.0),
            )
            for index in range(20)
        )  # fmt: skip
        telemetry_path(folder, rank).write_bytes(
            line_of(TelemetryStart(rate_hz=10.0)) + b"".join(map(line_of, samples))
        )


@cache
def files_of(write: Callable[[Path], None]) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        write(Path(folder))
        return {str(one.relative_to(folder)): one.read_bytes() for one in Path(folder).rglob("*") if one.is_file()}


@st.composite
def with_a_change(draw: st.DrawFn, write: Callable[[Path], None]) -> dict[str, bytes]:
    """Files by their paths; one is changed as a whole, or, of JSON lines, in one line."""
    files = dict(files_of(write))
    name = draw(st.sampled_from(sorted(files)))
    content = files[name]
    if name.endswith(".json"):
        content = draw(changed_json(json.loads(content)))
    elif name.endswith(".toml"):
        content = draw(changed_toml(content.decode()))
    elif draw(st.booleans()):
        content = draw(changed_bytes(content))
    else:
        lines = content.splitlines(keepends=True)
        index = draw(st.integers(0, len(lines) - 1))
        lines[index] = draw(changed_json(json.loads(lines[index]))).replace(b"\n", b"") + b"\n"
        content = b"".join(lines)
    return files | {name: content}


def put(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def show_a_page(folder: Path, data: st.DataObject) -> int:
    version = result_sets.read_version(folder, name="fuzz")
    pages = page_sources(version)
    page = pages[data.draw(st.sampled_from(sorted(pages)))]
    names: dict[str, Any] = {}
    with (
        mock.patch.object(result_sets, "version_of_page", return_value=version),
        mock.patch.object(figure, "_static_svg", return_value=""),
    ):
        for cell in jupytext.reads(page, fmt="md:myst").cells:
            if cell.cell_type == "code":
                output_of(cell.source, names)
    return 0


COMMANDS: Final[tuple[Callable[[str, st.DataObject], int], ...]] = (
    lambda folder, _: verify.main([folder]),
    lambda folder, _: verify.main([folder, "--write-hashes"]),
    lambda folder, _: export.main([f"{folder}/set", "--format", "csv"]),
    lambda folder, _: export.main([f"{folder}/set", "--format", "reframe", "--matrix", "short"]),
    lambda folder, _: compare_command.main([f"{folder}/set", f"{folder}/set", "--json"]),
    lambda folder, data: show_a_page(Path(folder), data),
)


@given(with_a_change(write_version), st.sampled_from(COMMANDS), st.data())
def test_stored_results(files: dict[str, bytes], command: Callable[..., int], data: st.DataObject) -> None:
    with taken_or_refused() as folder:
        put(files, folder)
        raise SystemExit(command(str(folder), data))


@given(with_a_change(write_campaign), st.sampled_from((2, 3)))
def test_bench_and_store_after_an_interruption(files: dict[str, bytes], rounds: int) -> None:
    def documents(drafts: Any) -> list[Any]:
        return [store._document_without_samples(draft) for draft in drafts]

    with taken_or_refused() as folder, mock.patch.object(store, "replay", documents):
        put(files, folder)
        list(measured_costs(folder, ONE.task))
        read_skipped(folder / "bisect.json", "a/b")
        capacity_search.write_found([], folder / "capacity.json")
        store_finished(folder)
        campaign = campaign_of(SimulatedHost(), (ONE, NODES), rounds=rounds)
        require_identity(folder)
        with opened(folder, {**IDENTITY, "rounds": rounds}) as now:
            cases.set_failures_aside(campaign, now)
            cases.require_raw(campaign, now)
            known_rounds(campaign, now)
            next(blocks_to_run(campaign, now), None)
            for item in campaign.planned:
                cases.store_if_complete(campaign, now, item)
            pair_files.write_all(now)


@given(with_a_change(write_run))
def test_files_of_a_run(files: dict[str, bytes]) -> None:
    """Whatever the ranks wrote becomes a record that the store takes: a run has an outcome."""
    with taken_or_refused() as folder:
        put(files, folder)
        found = collect(folder, NODES, 0, ENDED, GPU_HOST)
        store.write_record(found, folder / "record.json")
        assert store.read_record(folder / "record.json").outcome == found.outcome
    with taken_or_refused() as folder:
        put(files, folder / "r0")
        record(folder / "r0", Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))
