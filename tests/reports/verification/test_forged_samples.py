"""Samples forged by somebody who knows all formulas and writes all hashes again: ``verify`` names each forgery."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.results.damaged_results import machine, ranks, rounds, sample, set_item, telemetry
from tests.fixtures.results.forged_version import (
    PER_GPU,
    SHADOW,
    SMALL,
    Forgery,
    forge,
    sentences,
    write_all_hashes,
    write_figures,
)

TIMES = (
    "iteration_time_s", "collection_time_s", "learning_time_s", "environment_step_time_s", "simulate_time_s",
    "render_time_s", "inference_time_s", "all_reduce_time_s", "start_s",
)  # fmt: skip
PAIRS_2 = "h200-x2-pairs-2/upstream.json"


def case_of(document: Any, **changes: object) -> None:
    document["labscale"]["configuration"].update(changes)


def faster(document: Any, factor: float, names: tuple[str, ...], *, round_index: int = 0) -> None:
    """Scale all named times of one round, on all ranks."""
    for rank in rounds(document)[round_index]["ranks"]:
        for name in names:
            if name in rank["samples"]:
                values = rank["samples"][name]
                values[:] = [value and value * factor for value in values]


def faster_by_both_clocks(document: Any) -> None:
    """Scale all times, and what the library says of its own, but not the starts of iterations."""
    library = ("rsl_rl.collection_time_s", "rsl_rl.learning_time_s")
    faster(document, 0.88, (*TIMES[:8], *library))
    faster(document, 1 / 0.88, ("rsl_rl.total_fps",))


def copied(document: Any, *, factor: float = 1.0) -> None:
    """Replace the last round by the first, which was quicker, at another time of day."""
    first, last = copy.deepcopy(rounds(document)[0]), rounds(document)[2]
    for name in ("run", "started_utc"):
        first[name] = last[name]
    first["telemetry"]["window_start_unix_s"] = last["telemetry"]["window_start_unix_s"]
    rounds(document)[2] = first
    faster(document, factor, ("iteration_time_s",), round_index=2)


def of_environments(document: Any, name: str, value: Any, *, first: int = 2) -> None:
    for index in range(first, len(rounds(document))):
        machine(document, index)[name] = value


def both_ranks(document: Any, change: Callable[[Any], None]) -> None:
    for rank in ranks(document):
        change(rank)


def shorten(rank: Any) -> None:
    for values in rank["samples"].values():
        values.pop()


def test_nothing_is_found_in_the_version_before_it_is_forged(original: Path) -> None:
    assert sentences(original) == []


# What was forged, in which file, and which words the finding has.
FORGERIES: list[tuple[str, str, Forgery, str]] = [
    ("one slow iteration", SHADOW, lambda d: sample(d, "iteration_time_s", 9, 0.5), "collection_time_s of iteration 9"),
    ("all times", SHADOW, lambda d: faster(d, 0.9, TIMES[:1]), "collection_time_s and learning_time_s of iteration"),
    ("all times with parts", SHADOW, lambda d: faster(d, 0.9, TIMES[:8]), "the time by rsl_rl.collection_time_s"),
    ("times and their clock", SHADOW, lambda d: faster(d, 0.9, TIMES), "telemetry.window_s"),
    ("times by both clocks", SHADOW, faster_by_both_clocks, "the share of its time between iterations is 0.1"),
    ("the library's clock", PER_GPU, lambda d: sample(d, "rl_games.total_fps", 9, 1.2), "the iteration by rl_games"),
    ("a longer iteration", SHADOW, lambda d: sample(d, "iteration_time_s", 9, 1.5), "until the next began"),
    ("a column is shorter", SHADOW, lambda d: set_item(ranks(d)[1]["samples"], "reward_mean", [1.0]), "rank 1 has"),
    ("fewer iterations", SHADOW, lambda d: both_ranks(d, shorten), "the nu"),
    ("a rank is left out", SHADOW, lambda d: ranks(d).pop(), "its ranks are [0], expected 2 ranks"),
    ("a rank without a column", SHADOW, lambda d: ranks(d)[1]["samples"].pop("marked"), "rank 1: its columns"),
    ("marks are moved", SHADOW, lambda d: both_ranks(d, lambda r: r["samples"]["marked"].reverse()), "marked of iter"),
    ("a round is copied", SHADOW, copied, "its list of iteration times is that of h200-x2-shadow: shadow-horizontal/"),
    ("a copy made faster", SHADOW, lambda d: copied(d, factor=0.99), "round 0, rank 0, up to a factor"),
    ("a rank is copied", SHADOW, lambda d: ranks(d)[1].update(samples=ranks(d)[0]["samples"]), "its list of starts is"),
    ("the last round is left out", SHADOW, lambda d: rounds(d).pop(), "rounds of cases with 'as many rounds as were"),
    ("a slow round is left out", SHADOW, lambda d: rounds(d).pop(1), "the numbers of the rounds[1] is 2, expected 1"),
    ("a failure is hidden", SHADOW, lambda d: rounds(d)[0].update(exit_code=1), "exit_code is 1 in a round called"),
    ("a failed check is hidden", SHADOW, lambda d: ranks(d)[0]["validity"][0].update(verdict="failure"), "a failure ("),
    ("a check has another word", SHADOW, lambda d: ranks(d)[0]["validity"][0].update(verdict="fine"), "is 'fine', exp"),
    ("an outcome has another word", SHADOW, lambda d: rounds(d)[0].update(outcome="ok"), "outcome is 'ok', expected"),
    ("policies differ", SHADOW, lambda d: ranks(d)[0].update(parameters_sha256="0" * 64), "the ranks' parameters is o"),
    ("rounds at the same time", SHADOW, lambda d: rounds(d)[1].update(started_utc=rounds(d)[0]["started_utc"]), "sha"),
    ("rounds overlap", SHADOW, lambda d: rounds(d)[0].update(wall_time_s=900.0), "the time on 'H200 host Q' is shared"),
    ("an impossible wall time", SHADOW, lambda d: rounds(d)[0].update(wall_time_s=9.0), "wall_time_s around its start"),
    ("another driver", SHADOW, lambda d: of_environments(d, "driver_version", "999"), "the driver_version of its"),
    ("another processor", SHADOW, lambda d: of_environments(d, "cpu_model", "X"), "the cpu_model of its rounds is"),
    ("fewer cores", SHADOW, lambda d: of_environments(d, "num_cpus", 8), "the num_cpus of its rounds is 32 and 8"),
    ("another kernel", SHADOW, lambda d: of_environments(d, "kernel", "5.4"), "the kernel of its rounds is 5.4 and 6"),
    ("fewer GPUs", SHADOW, lambda d: machine(d, 1)["gpus"].pop(), "the number of GPUs of its rounds is"),
    ("another GPU", SHADOW, lambda d: machine(d, 1)["gpus"][0].update(name="X"), "the kind of GPU of"),
    ("more environments", SHADOW, lambda d: case_of(d, num_envs_global=2048), "num_envs times ranks is 1024, expected"),
    ("more of them everywhere", SHADOW, lambda d: case_of(d, num_envs=1024, num_envs_global=2048), "which its id says"),
    ("more steps", SHADOW, lambda d: case_of(d, num_steps_per_env=128), "workload.num_steps_per_env is 64, expected 1"),
    ("smaller minibatches", SHADOW, lambda d: case_of(d, minibatch_size=64), "workload.minibatch_size is"),
    ("no minibatches", SHADOW, lambda d: case_of(d, minibatch_size=0), "case.minibatch_size is 0, expected at least 1"),
    ("another task", SHADOW, lambda d: case_of(d, task="Isaac-Ant"), "workload.task is Isaac-Reorient"),
    ("another seed", SHADOW, lambda d: case_of(d, seed=7), "settings.seed is 42, expected 7"),
    ("other work in one round", SHADOW, lambda d: rounds(d)[1]["workload"].update(x=1), "the workload's fingerprint"),
    ("no fingerprint", SHADOW, lambda d: rounds(d)[1].update(workload=None), "fingerprint of the work is missing"),
    ("no checks of the work", SHADOW, lambda d: ranks(d)[0].update(validity=[]), "a check of the work is missing in 1"),
    ("less energy", SHADOW, lambda d: set_item(telemetry(d), "energy_j", 1.0), "telemetry.energy_j is 1.0, expected"),
    ("less power", SHADOW, lambda d: scale_power(d, 0.5), "telemetry.gpus[0].power_w.mean is"),
    ("more frames per joule", SHADOW, lambda d: set_item(telemetry(d), "frames_per_joule", 1e3), "frames_per_joule is"),
    ("more memory than a GPU has", SHADOW, lambda d: ranks(d)[0].update(peak_memory_gb=500.0), "peak_memory_gb is 500"),
    ("why it ended", SHADOW, lambda d: ended(d, None), "the reason why no further round ran is missing"),
    ("how many were asked for", PER_GPU, lambda d: ended(d, "the budget of 5 rounds is spent"), "by ended_because is"),
    ("a pair that never ran", PAIRS_2, lambda d: d[1].update(run=5), "round 5 of shadow-vertical"),
]  # fmt: skip


def scale_power(document: Any, factor: float) -> None:
    for one in (telemetry(document), *telemetry(document)["gpus"]):
        one["power_w"] = {name: value * factor for name, value in one["power_w"].items()}


def ended(document: Any, why: str | None) -> None:
    document["labscale"]["ended_because"] = why


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [pytest.param(name, change, words, id=what) for what, name, change, words in FORGERIES],
)
def test_a_forgery_of_a_file_is_named(version: Path, name: str, change: Forgery, words: str) -> None:
    forge(version, name, change)
    said = sentences(version)
    assert any(words in sentence for sentence in said), said


def without(version: Path, name: str) -> None:
    (version / name).unlink()


def copy_case(version: Path) -> None:
    """Publish a slow case as another, quicker one: its file twice, under another id."""
    document = json.loads((version / SMALL).read_text().replace("n512-1x1", "n512-1x1-wide"))
    (version / SMALL.replace("1x1", "1x1-wide")).write_text(json.dumps(document))


def move_to_other_set(version: Path) -> None:
    target = version / "h200-x2-per-gpu" / "/".join(SMALL.split("/")[1:])
    target.parent.mkdir(parents=True)
    shutil.copy(version / SMALL, target)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda v: without(v, SHADOW), "n1024-1x2 is not stored, expected stored", id="a case is left out"),
        pytest.param(lambda v: without(v, "h200-x2-shadow/plan.json"), "plan.json is missing in 1 of 4", id="a plan"),
        pytest.param(copy_case, "-wide is stored, expected not: the plan", id="a case that no plan has"),
        pytest.param(copy_case, "its list of iteration times is that of", id="a case is copied"),
        pytest.param(move_to_other_set, "h200-x2-per-gpu: shadow-horizontal", id="a case is copied to another set"),
        pytest.param(move_to_other_set, "2 sets that do not say so", id="sets at the same time on one host"),
        pytest.param(lambda v: (v / SMALL).rename(v / SMALL.replace("n512", "n64")), "the file's name is", id="a name"),
    ],
)
def test_a_forgery_of_several_files_is_named(version: Path, change: Callable[[Path], None], words: str) -> None:
    change(version)
    write_all_hashes(version)
    said = sentences(version)
    assert any(words in sentence for sentence in said), said


def test_a_consistent_invention_is_not_found(version: Path) -> None:
    """The limit of every verifier, said in the book: numbers that nobody measured, made to fit in all respects."""

    def invent(document: Any) -> None:
        for rank in ranks(document):
            rank["samples"]["reward_mean"] = [value and value + 100 for value in rank["samples"]["reward_mean"]]

    forge(version, SHADOW, invent)
    assert any("measured.last_reward is" in sentence for sentence in sentences(version))
    write_figures(version)
    write_all_hashes(version)
    assert sentences(version) == []
