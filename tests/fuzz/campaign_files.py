"""Files of a campaign that was cut off, read by ``store`` and by the same ``bench`` before it starts anything."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import pytest

from suite.campaign import record_round
from suite.campaign.bisect.answer import read_skipped
from suite.campaign.capacity import search as capacity_search
from suite.campaign.cases import require_raw, set_failures_aside, store_if_complete
from suite.campaign.folder import Folder, require_identity
from suite.campaign.identity import opened
from suite.campaign.planning.registered_task import measured_costs
from suite.campaign.runs import pair_files
from suite.campaign.schedule import blocks_to_run, known_rounds
from suite.commands.store import store_finished
from suite.external.nvml.values import GpuReading
from suite.launch import LaunchResult
from suite.records import store
from suite.records.collect import collect
from suite.records.telemetry.file import HostReading, RankReading, Sample, TelemetryStart, line_of, telemetry_path
from suite.schema.record import Case
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_record
from tests.fixtures.runs.asked_options import changed
from tests.fixtures.runs.simulated_campaign import campaign_of
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.fuzz.mutations import any_number, json_bytes, mutate_bytes
from tests.fuzz.target import Target

# The second has a round less, and the third one that failed.
CAMPAIGN: Final = (
    make_case(device="cuda", rl_library="rl_games"),
    make_case(world_size=2, device="cuda"),
    make_case("ant-weak", scaling="weak", device="cuda"),
)
IDENTITY: Final = {"matrix": "smoke", "seed": 42, "gpus": ["H200"], "rounds": 2, "precision": None, "max_rounds": None}
ON_ONE_NODE: Final = make_case(world_size=2, device="cuda")
ON_TWO_NODES: Final = make_case(world_size=2, nnodes=2, device="cuda")
ENDED: Final = LaunchResult(
    exit_code=0, ended_by=None, started_utc="2026-11-21T10:00:00+00:00", wall_time_s=60.0, nodes=("head", "other")
)


def write_campaign(root: Path) -> None:
    folder = Folder(root=root)
    for index in range(2):
        for case in CAMPAIGN:
            failed = index == 1 and case == CAMPAIGN[2]
            record = make_record(case, index=index, outcome="crashed" if failed else "completed", reason="it did")
            if index == 0 or case != CAMPAIGN[1]:
                path = folder.record_path(case, index)
                path.parent.mkdir(parents=True)
                path.write_text(json.dumps(asdict(record)), encoding="utf-8")
                (path.parent / "case.json").write_text(json.dumps(asdict(case)), encoding="utf-8")
    theirs = folder.run_dir(CAMPAIGN[0], 0) / "upstream" / "upstream.json"
    theirs.parent.mkdir()
    theirs.write_text(json.dumps({"iteration_time_s": [0.5] * CAMPAIGN[0].iterations, "wall_time_s": 60.0}))
    (root / "campaign.json").write_text(json.dumps(IDENTITY), encoding="utf-8")


def change_a_file(rng: random.Random, root: Path) -> None:
    path = rng.choice(sorted(path for path in root.rglob("*.json") if path.name != "case.json"))
    path.write_bytes(json_bytes(rng, json.loads(path.read_bytes())))


@contextmanager
def stored_at_once() -> Iterator[None]:
    """A pytest session for each case would take all of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "replay", lambda drafts: [store._document_without_samples(draft) for draft in drafts])
        yield


def store_what_ended(rng: random.Random, folder: Path) -> None:
    write_campaign(folder)
    change_a_file(rng, folder)
    with stored_at_once():
        for result in store_finished(folder):
            store.read_case(Folder(root=folder).case_path(result.case))


def go_on(rng: random.Random, folder: Path) -> None:
    """What the same ``bench`` reads before the first round that is left."""
    write_campaign(folder)
    with stored_at_once():
        if rng.random() < 0.5:
            store_finished(folder)
        change_a_file(rng, folder)
        campaign = campaign_of(SimulatedHost(), CAMPAIGN, rounds=2)
        campaign = replace(campaign, options=changed(campaign.options, upstream=True))
        require_identity(folder)
        with opened(folder, {**IDENTITY, "rounds": rng.choice((2, 3))}) as now:
            if rng.random() < 0.3:
                set_failures_aside(campaign, now)
            require_raw(campaign, now)
            known_rounds(campaign, now)
            next(blocks_to_run(campaign, now), None)
            for item in campaign.planned:
                store_if_complete(campaign, now, item)
            pair_files.write_all(now)


def learn_costs(rng: random.Random, folder: Path) -> None:
    """What ``plan`` and ``bench`` read of a campaign whose task the catalog does not know."""
    write_campaign(folder)
    path = rng.choice(sorted(path for path in folder.rglob("*.json") if path.name in ("case.json", "record.json")))
    path.write_bytes(json_bytes(rng, json.loads(path.read_bytes())))
    list(measured_costs(folder, CAMPAIGN[0].task))


# --- what ranks and samplers wrote -----------------------------------------------------------------------------------


def events(case: Case, rank: int) -> list[dict[str, Any]]:
    node, local_rank = divmod(rank, case.nproc_per_node)
    start = {"event": "start", "rank": rank, "local_rank": local_rank, "pid": 7, "node": node, "machine": f"m{node}"}
    offset = {"event": "clock_offset", "offset_s": 0.1 * node, "bound_s": 1e-4, "wall_offset_s": 0.0}
    offsets = [{**offset, "when": "start"}, {**offset, "when": "end"}] if node else []
    samples: dict[str, float | None] = {
        "iteration_time_s": 0.5, "collection_time_s": 0.3, "learning_time_s": 0.2, "marked": 0.0,
        "all_reduce_calls": None, "reward_mean": 1.0, "rsl_rl.total_fps": 1e4,
    }  # fmt: skip
    check = {"name": "cameras", "feature": "rendering", "verdict": "ok", "found": "2 of 2", "fault": None}
    return [
        start,
        {"event": "network", "interfaces": ["eth0"], "nccl_log_written_s": 1.0},
        *offsets,
        {"event": "clock", "zero_monotonic_s": 100.0 + 0.1 * node},
        {"event": "phase", "name": "imports", "duration_s": 2.5},
        {"event": "settings", "settings": {"seed": 42 + rank, "tf32": True, "lr": 1e-3, "versions.torch": "2.11.0"}},
        {"event": "workload", "workload": {"task": case.task, "decimation": 2}},
        *(
            {"event": "iteration", "iteration": index, "samples": {"start_s": 0.5 * index, **samples}}
            for index in range(case.iterations)
        ),
        {"event": "validity", "checks": [check]},
        {"event": "end", "parameters_sha256": "ab" * 32, "peak_memory_gb": 1.5, "kernels_compiled": 7},
    ]


def readings(case: Case, node: int) -> list[bytes]:
    ranks = range(node * case.nproc_per_node, (node + 1) * case.nproc_per_node)
    return [
        line_of(TelemetryStart(rate_hz=10.0)),
        *(
            line_of(
                Sample(
                    time_unix_s=1000.0 + 0.1 * index,
                    monotonic_s=99.0 + 0.1 * index,
                    reading_time_s=0.001,
                    sampler_cpu_s=0.001 * index,
                    gpus=tuple(
                        GpuReading(index=gpu, power_w=300.0, energy_j=30.0 * index, slowdowns=("idle",))
                        for gpu in range(case.nproc_per_node)
                    ),
                    ranks=tuple(RankReading(rank=rank, cpu_percent=100.0, memory_gb=2.0) for rank in ranks),
                    host=HostReading(cpu_percent=50.0, stolen_percent=1.0, others_percent=2.0, load=1.0),
                )
            )
            for index in range(80)
        ),
    ]


def write_run(run_dir: Path, case: Case) -> None:
    run_dir.mkdir(parents=True)
    (run_dir / "case.json").write_text(json.dumps(asdict(case)), encoding="utf-8")
    for rank in range(case.world_size):
        text = "".join(json.dumps(event) + "\n" for event in events(case, rank))
        (run_dir / f"rank-{rank}.jsonl").write_text(text, encoding="utf-8")
    for node in range(case.nnodes):
        telemetry_path(run_dir, node if case.nnodes > 1 else None).write_bytes(b"".join(readings(case, node)))


def change_a_line(rng: random.Random, path: Path) -> None:
    """Some lines; or the same number in all of them."""
    lines = path.read_bytes().splitlines(keepends=True)
    if rng.random() < 0.1:
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        return
    every = rng.random() < 0.3
    seed, like = rng.random(), rng.randrange(len(lines))
    event = json.loads(lines[like])["event"]
    for index, line in enumerate(lines):
        if index == like or (every and json.loads(line)["event"] == event):
            alike = random.Random(seed)  # noqa: S311 - no secret
            lines[index] = json_bytes(alike, json.loads(line)).replace(b"\n", b"") + b"\n"
    if rng.random() < 0.1:
        lines.insert(like, json.dumps({"event": event, "time": any_number(rng)}).encode() + b"\n")
    path.write_bytes(b"".join(lines))


def collect_a_round(rng: random.Random, folder: Path) -> None:
    """Whatever the ranks wrote is a record that the store takes: a round has an outcome."""
    case = rng.choice((ON_ONE_NODE, ON_TWO_NODES))
    run_dir = folder / "raw" / case.case_id / "r0"
    write_run(run_dir, case)
    change_a_line(rng, rng.choice(sorted(run_dir.glob("*.jsonl"))))
    record = collect(run_dir, case, 0, ENDED, GPU_HOST)
    store.write_record(record, run_dir / "record.json")
    assert store.read_record(run_dir / "record.json").outcome == record.outcome


def record_a_round(rng: random.Random, folder: Path) -> None:
    """Record a run of the stored case, like a pod does."""
    run_dir = folder / "raw" / ON_TWO_NODES.case_id / "r0"
    write_run(run_dir, ON_TWO_NODES)
    path = run_dir / "case.json"
    path.write_bytes(json_bytes(rng, json.loads(path.read_bytes())))
    with stored_at_once():
        record_round.record(run_dir, record_round.Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))


def add_answers(rng: random.Random, folder: Path) -> None:
    """What ``bench --capacity`` reads before it adds to it."""
    path = folder / "capacity.json"
    answer = {"first_case_id": "a/b", "capacity": {"num_envs": 64, "because": "x"}, "trials": [{"num_envs": 64}]}
    stored = {"min_rise": 0.05, "resolution": 0.05, "found": [answer]}
    path.write_bytes(json_bytes(rng, stored))
    capacity_search.write_found([], path)
    capacity_search.write_found([], path)


def read_steps(rng: random.Random, folder: Path) -> None:
    """Read what ``bench --bisect`` left, as the next command does."""
    path = folder / "bisect.json"
    path.write_bytes(json_bytes(rng, {"case_id": "a/b", "skipped": {"1.6.0": "crashed"}, "steps": []}))
    read_skipped(path, "a/b")


CAMPAIGN_FILES: Final[tuple[Target, ...]] = (
    Target(name="store_of_a_campaign", attempt=store_what_ended),
    Target(name="bench_that_goes_on", attempt=go_on),
    Target(name="costs_of_a_campaign", attempt=learn_costs),
    Target(name="capacity_json", attempt=add_answers),
    Target(name="bisect_json", attempt=read_steps),
    Target(name="files_of_ranks", attempt=collect_a_round),
    Target(name="case_of_a_round", attempt=record_a_round),
)
