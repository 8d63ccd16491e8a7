"""What no case and no round has is refused where it is read and before it is written, and never comes of a round."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreError
from suite.records import store
from suite.records.validation import fault_of, stored_case
from suite.schema.observations import NodeReadings
from suite.schema.record import CaseResult, RunRecord
from tests.fixtures.results.generated_results import make_case, make_record
from tests.fixtures.results.rank_events import RankFiles, end, head, iterations, whole

SOUND = make_record(make_case(world_size=2))


def with_case(**changes: object) -> RunRecord:
    return replace(SOUND, case=replace(SOUND.case, **changes))  # type: ignore[arg-type]


def with_samples(**columns: tuple[float | None, ...]) -> RunRecord:
    ranks = [replace(rank, samples={**rank.samples, **columns}) for rank in SOUND.ranks]
    return replace(SOUND, ranks=(SOUND.ranks[0], ranks[1]))


def cut(record: RunRecord, length: int) -> RunRecord:
    ranks = [
        replace(rank, samples={name: column[:length] for name, column in rank.samples.items()}) for rank in record.ranks
    ]
    return replace(record, ranks=tuple(ranks))


UNSOUND = [
    (with_case(num_envs_global=0), "configuration.num_envs_global: Input should be greater than or equal to 1 (got 0)"),
    (with_case(minibatch_size=0), "its minibatch_size is 0, allowed is 1 or more"),
    (with_case(iterations=1), "configuration.iterations: Input should be greater than or equal to 2"),
    (with_case(case_id="../../elsewhere"), "configuration.configuration_id: String should match"),
    (
        replace(SOUND, started_utc="2026-13-21T10:00:00Z"),
        "its started_utc is '2026-13-21T10:00:00Z', allowed is a date",
    ),
    (replace(SOUND, started_utc=None), "its wall_time_s is 60 without a started_utc"),
    (replace(SOUND, ranks=SOUND.ranks[::-1]), "its ranks are [1, 0], needed are 0 to 1"),
    (with_samples(marked=(0.0,) * 11), "rank 1 has 12 samples of success_rate and 11 of marked"),
    (
        replace(SOUND, ranks=(SOUND.ranks[0], cut(SOUND, 11).ranks[1])),
        "rank 1 has times of 11 of 12 iterations",
    ),
    (with_samples(iteration_time_s=(0.5,) * 11 + (0.0,)), "rank 1, iteration 11: iteration_time_s is 0.0"),
    *(
        (with_samples(**{name: (None,) * 11 + (value,)}), f"rank 1, iteration 11: {name} is {value:g} in an iteration")
        for name, value in (
            ("rl_games.update_time_s", -172_800.0),
            ("rsl_rl.collection_time_s", 3.0),
            ("rl_games.total_fps", -10.0),
        )
    ),
    (
        replace(SOUND, readings=(NodeReadings(node=2, columns={"time_s": (1.0, 2.0), "rank0.core": (3,)}),)),
        "node 2 has 2 readings of time_s and 1 of rank0.core",
    ),
    (with_samples(reward_mean=(1e300,) * 12), "ranks.1.samples.reward_mean.0: Input should be less than or equal to 1"),
]


def write_unchecked(record: RunRecord, folder: Path) -> Path:
    path = folder / "cases" / "case.json"
    path.parent.mkdir(parents=True)
    stored = stored_case(CaseResult(case=record.case, rounds=(record,)))
    path.write_text(json.dumps({"labscale": stored}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("record", "fault"), UNSOUND, ids=lambda value: value if isinstance(value, str) else "")
def test_what_no_round_has_is_named_and_not_read(record: RunRecord, fault: str, tmp_path: Path) -> None:
    assert fault_of(SOUND) is None
    assert fault in (fault_of(record) or "sound")
    path = write_unchecked(record, tmp_path)
    with pytest.raises(StoreError, match=f"^{path} is not valid: "):
        store.read_case(path)


def test_in_turns_a_time_of_a_library_includes_the_others() -> None:
    waited = with_samples(**{"rsl_rl.collection_time_s": (59.0,) * 12})
    assert fault_of(waited) is not None
    in_turns = with_samples(**{"rsl_rl.collection_time_s": (59.0,) * 12, "turn": (0.0,) * 12})
    assert fault_of(in_turns) is None
    assert fault_of(replace(in_turns, wall_time_s=58.0)) is not None


def test_a_skipped_round_may_have_a_batch_that_is_too_small_to_learn_from(tmp_path: Path) -> None:
    """Such a case is refused, and its refusal has to be stored."""
    skipped = replace(with_case(minibatch_size=0, optimiser_steps=0), outcome="skipped", ranks=())
    assert fault_of(skipped) is None
    assert store.read_case(write_unchecked(skipped, tmp_path)).rounds[0].outcome == "skipped"


type Change = Callable[[list[dict[str, Any]]], object]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda events: events[1].update(duration_s=math.nan),
            "rank-1.jsonl line 2 is not an event: Input should be a f",
        ),
        (lambda events: events[2]["settings"].update(tf32=math.inf), "rank-1.jsonl line 3 is not an event"),
        (lambda events: events[-1].update(peak_memory_gb=1e300), "rank-1.jsonl line 7 is not an event"),
        (lambda events: events[3]["samples"].update(reward_mean=1e300), "rank 1, iteration 0: reward_mean is 1e+300"),
    ],
)
def test_what_no_rank_measures_makes_a_round_invalid(rank_files: RankFiles, change: Change, reason: str) -> None:
    """This once counted as a fault of the program, and the campaign ended without a record."""
    events = whole(1)
    change(events)
    rank_files.rank(0, whole(0))
    rank_files.rank(1, events)
    record = rank_files.collect()
    assert record.outcome == "invalid"
    assert reason in (record.reason or "")
    path = rank_files.run_dir / "record.json"
    store.write_record(record, path)
    assert store.read_record(path).outcome == "invalid"


def test_a_round_that_is_too_short_is_invalid(rank_files: RankFiles) -> None:
    rank_files.case = replace(rank_files.case, iterations=1)
    for rank in range(2):
        rank_files.rank(rank, head(rank) + iterations(1) + end())
    record = rank_files.collect()
    assert (record.outcome, record.reason) == (
        "invalid",
        "configuration.iterations: Input should be greater than or equal to 2 (got 1)",
    )
