"""Forgeries of samples by somebody who makes every hash and figure fit: each is found, or listed as not to be found."""

import copy
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fixtures.results.damaged_results import COMMITTED, fit_figures, sentences, write_all_hashes

SETS: Final = ("h200-first", "h100-x2-shadow", "h200-start-up")  # in turns; on two GPUs; alone and cold
ANT: Final = "h200-first/cases/ant-weak/rl_games-kitless-n1024-1x1.json"
BESIDE: Final = "h200-first/cases/ant-envs/rl_games-kitless-n8192-1x1.json"
SHADOW: Final = "h100-x2-shadow/cases/shadow-horizontal/rsl_rl-kitless-n1024-1x2.json"
SKIPPED: Final = "h100-x2-shadow/cases/shadow-horizontal/rsl_rl-kitless-n1024-2x1.json"
START: Final = "h200-start-up/cases/cartpole-start-up/rsl_rl-kitless-n4096-1x1.json"
COLD: Final = "h200-start-up/cases/cartpole-start-up/rsl_rl-kitless-n4096-1x1-cold.json"

type Forgery = Callable[[Any], object]  # changes a document, or one of its runs


def runs(document: Any) -> list[Any]:
    stored: list[Any] = document["labscale"]["runs"]
    return stored


def case_of(document: Any) -> Any:
    return document["labscale"]["configuration"]


def columns_of(run: Any, names: str) -> list[list[float]]:
    """Return the columns of all ranks whose name fits."""
    return [column for rank in run["ranks"] for name, column in rank["samples"].items() if re.fullmatch(names, name)]


def change_columns(run: Any, names: str, change: Callable[[float], float]) -> None:
    for column in columns_of(run, names):
        column[:] = [value if value is None else change(value) for value in column]


# --- times ---


def scale(run: Any, factor: float) -> None:
    """Make a run faster in all that says how long it took: both clocks, the window, the readings, and its energy."""
    change_columns(run, r".*_time_s|start_s", lambda value: value * factor)
    change_columns(run, r".*_fps", lambda value: value / factor)
    seen = run["telemetry"]
    first_s = run["ranks"][0]["samples"]["start_s"][0]
    seen["window_start_unix_s"] -= first_s / factor - first_s
    seen["window_s"] *= factor
    for gpu in seen["gpus"]:
        gpu["energy_integrated_j"] *= factor
        gpu["energy_counter_j"] = gpu["energy_counter_j"] and gpu["energy_counter_j"] * factor
    seen["energy_j"] *= factor
    seen["frames_per_joule"] /= factor
    for node in run["readings"]:
        node["columns"]["time_s"] = [time_s * factor for time_s in node["columns"]["time_s"]]


def scale_all(document: Any, factor: float) -> None:
    for run in runs(document):
        scale(run, factor)


def only_times(run: Any) -> None:
    change_columns(run, "iteration_time_s", lambda value: value * 0.97)


def times_and_parts(run: Any) -> None:
    change_columns(run, r".*_time_s", lambda value: value * 0.97)
    change_columns(run, r".*_fps", lambda value: value / 0.97)


def one_iteration(run: Any) -> None:
    for column in columns_of(run, "iteration_time_s|collection_time_s"):
        column[9] -= 0.5 * columns_of(run, "collection_time_s")[0][9]


def longer_iteration(run: Any) -> None:
    for column in columns_of(run, r"(rl_games\.)?(iteration|collection|update)_time_s"):
        column[9] *= 2


def rank_copied(run: Any) -> None:
    run["ranks"][1]["samples"] = copy.deepcopy(run["ranks"][0]["samples"])


def shifted(run: Any) -> None:
    run["telemetry"]["window_start_unix_s"] += 20


def started_earlier(document: Any) -> None:
    for run in runs(document):
        run["started_utc"] = run["started_utc"].replace("2026-11", "2026-10")
        run["telemetry"]["window_start_unix_s"] -= 31 * 86400


# --- copies ---


def copied(document: Any, change: Forgery) -> None:
    """Replace the last run by the first one, changed, at its own time of day."""
    copied_run, last = copy.deepcopy(runs(document)[0]), runs(document)[-1]
    kept = {name: last[name] for name in ("run", "started_utc", "wall_time_s", "turns", "machine")}
    start_s = copied_run["telemetry"]["window_start_unix_s"] - runs(document)[0]["telemetry"]["window_start_unix_s"]
    change(copied_run)
    copied_run["telemetry"]["window_start_unix_s"] = last["telemetry"]["window_start_unix_s"] + start_s
    runs(document)[-1] = {**copied_run, **kept}


def as_it_is(_: Any) -> None:
    """Change nothing."""


def multiplied(run: Any, factor_of: Callable[[int], float]) -> None:
    """Multiply the times of every iteration, and let each begin when the one before has ended."""
    for rank in run["ranks"]:
        samples = rank["samples"]
        gaps_s = [
            after - start - time_s
            for start, after, time_s in zip(
                samples["start_s"], samples["start_s"][1:], samples["iteration_time_s"], strict=False
            )
        ]
        for name, column in samples.items():
            if name.endswith("_time_s") and "probe" not in name:
                column[:] = [value and value * factor_of(i) for i, value in enumerate(column)]
            if name.endswith("_fps"):
                column[:] = [value and value / factor_of(i) for i, value in enumerate(column)]
        for i, gap_s in enumerate(gaps_s):
            samples["start_s"][i + 1] = samples["start_s"][i] + samples["iteration_time_s"][i] + gap_s


def smoothed(run: Any) -> None:
    multiplied(run, lambda i: 0.97 + 0.0005 * i)


def noisy(run: Any, share: float) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    factors = [chance.gauss(1, share) for _ in range(500)]
    multiplied(run, factors.__getitem__)


def permuted(run: Any, share: float = 0.0) -> None:
    """Exchange unmarked iterations of the same turn, from the second one on."""
    noisy(run, share)
    for rank in run["ranks"]:
        samples = rank["samples"]
        for i in range(4, len(samples["start_s"]) - 2, 4):
            gap_s = samples["start_s"][i + 1] - samples["start_s"][i] - samples["iteration_time_s"][i]
            if "turn" not in samples or samples["turn"][i - 1] == samples["turn"][i + 1]:
                for name in set(samples) - {"start_s", "turn", "marked", "core_probe_time_s"}:
                    samples[name][i], samples[name][i + 1] = samples[name][i + 1], samples[name][i]
                samples["start_s"][i + 1] = samples["start_s"][i] + samples["iteration_time_s"][i] + gap_s


# --- what there is ---


def drop(document: Any, index: int) -> None:
    runs(document).pop(index)
    for number, run in enumerate(runs(document)):
        run["run"] = number


def invent(document: Any) -> None:
    """Add a run made of another one, slower and noisy, a while later."""
    made = copy.deepcopy(runs(document)[-1])
    noisy(made, 0.05)
    made["run"] = len(runs(document))
    made["started_utc"] = made["started_utc"].replace("T0", "T2").replace("T1", "T2")
    made["telemetry"]["window_start_unix_s"] += 43200
    runs(document).append(made)


def shorten_run(run: Any) -> None:
    for column in columns_of(run, ".*"):
        del column[-4:]


def shorten(document: Any) -> None:
    """Leave the last iterations out, as if fewer had been asked for."""
    case_of(document)["iterations"] -= 4
    for run in runs(document):
        shorten_run(run)


def longer_turns(run: Any) -> None:
    """Join the first two turns."""
    change_columns(run, "turn", lambda value: max(1, value - 1))
    run["turns"]["turns"] -= 1


def at_the_same_time(document: Any) -> None:
    runs(document)[1]["started_utc"] = runs(document)[0]["started_utc"]


def stretched_readings(run: Any) -> None:
    for node in run["readings"]:
        node["columns"]["time_s"] = [time_s * 1.2 for time_s in node["columns"]["time_s"]]


def move_turns(run: Any) -> None:
    for column in columns_of(run, "turn"):
        column.insert(9, column.pop(2))


def hole(run: Any) -> None:
    run["ranks"][0]["samples"]["iteration_time_s"][9] = None


def lose_column(run: Any) -> None:
    del run["ranks"][1]["samples"]["marked"]


def lose_policy(run: Any) -> None:
    run["ranks"][0]["parameters_sha256"] = None


def exchange_rewards(document: Any) -> None:
    first, last = (columns_of(run, "reward_mean")[0] for run in (runs(document)[0], runs(document)[-1]))
    first[:], last[:] = last[:], first[:]


def failed_check(run: Any) -> None:
    run["ranks"][0]["validity"][0]["verdict"] = "no"


def called_failed(run: Any) -> None:
    run.update(outcome="crashed", reason="it ended", exit_code=1)


def called_failed_and_cut(run: Any) -> None:
    called_failed(run)
    for rank in run["ranks"]:
        rank.update(parameters_sha256=None, error="RuntimeError", validity=[])
        for column in rank["samples"].values():
            del column[-3:]


def skipped_with_samples(document: Any) -> None:
    run = runs(document)[-1]
    run.update(outcome="skipped", reason="it cannot run here")


# --- machine and work ---


def machine(document: Any, **changes: Any) -> None:
    for stored in document["labscale"]["machines"]:
        stored.update(changes)


def other_gpu(document: Any) -> None:
    for gpu in (gpu for stored in document["labscale"]["machines"] for gpu in stored["gpus"]):
        gpu["name"] = "NVIDIA B200"


def other_gpu_by_ranks_too(document: Any) -> None:
    other_gpu(document)
    settings(document, "gpu_name", "NVIDIA B200")


def settings(document: Any, name: str, value: Any) -> None:
    for rank in (rank for run in runs(document) for rank in run["ranks"]):
        rank["settings"][name] = value


def packages_everywhere(document: Any) -> None:
    settings(document, "versions.torch", "2.12.0")
    document["machine_info"]["versions.torch"] = "2.12.0"


def seed(document: Any) -> None:
    case_of(document)["seed"] = 7


def seed_everywhere(document: Any) -> None:
    seed(document)
    for rank in (rank for run in runs(document) for rank in run["ranks"]):
        rank["settings"]["seed"] = 7 + rank["rank"]


def in_work(document: Any, name: str, value: Any, *, first: int = 0) -> None:
    for run in runs(document)[first:]:
        run["workload"][name] = value


def memory(run: Any, factor: float) -> None:
    for rank in run["ranks"]:
        rank["peak_memory_gb"] *= factor


def phases(run: Any, factor: float) -> None:
    for rank in run["ranks"]:
        rank["phases_s"] = {name: time_s * factor for name, time_s in rank["phases_s"].items()}


def kernels(run: Any, number: int) -> None:
    for rank in run["ranks"]:
        rank["kernels_compiled"] = number


# --- telemetry ---


def spread(part: Any, name: str, factor: float) -> None:
    part[name] = {side: value * factor for side, value in part[name].items()}


def half_the_power(run: Any, *, energy: bool) -> None:
    """Halve the power, and the energy that follows from it."""
    seen = run["telemetry"]
    for part in (seen, *seen["gpus"]):
        spread(part, "power_w", 0.5)
    if energy:
        for gpu in seen["gpus"]:
            gpu["energy_integrated_j"] *= 0.5
        seen["energy_j"] *= 0.5
        seen["frames_per_joule"] /= 0.5


def and_readings(run: Any) -> None:
    half_the_power(run, energy=True)
    for node in run["readings"]:
        for name, column in node["columns"].items():
            if name.endswith((".power_w", ".energy_j")):
                column[:] = [value * 0.5 for value in column]


def of_telemetry(run: Any, **changes: Any) -> None:
    run["telemetry"].update(changes)


def less_steal(run: Any) -> None:
    run["telemetry"]["host_stolen_percent"] = {"min": 0.0, "mean": 0.0, "max": 0.0}


def utilisation(run: Any, factor: float) -> None:
    spread(run["telemetry"]["gpus"][0], "sm_utilisation_percent", factor)


def energy_counter(run: Any) -> None:
    """Let the counter say less, and all that is made of it."""
    seen = run["telemetry"]
    for part in (seen["gpus"][0], seen):
        part["energy_counter_j" if part is not seen else "energy_j"] *= 0.8
    seen["frames_per_joule"] /= 0.8


def hidden_throttling(run: Any) -> None:
    run["readings"][0]["columns"]["gpu0.slowdowns"] = ["thermal_software"] * len(
        run["readings"][0]["columns"]["time_s"]
    )


def mean_utilisation(run: Any) -> None:
    seen = run["telemetry"]["gpus"][0]["sm_utilisation_percent"]
    seen["mean"] += 0.05 * (seen["max"] - seen["mean"])


# --- all of them ---


def first_run(change: Forgery) -> Forgery:
    return lambda document: change(runs(document)[0])


def every_run(change: Forgery) -> Forgery:
    def of_all(document: Any) -> None:
        for run in runs(document):
            change(run)

    return of_all


def move_sets(version: Path) -> None:
    """Publish a run of another case as a case of another set."""
    target = version / "h200-start-up" / ANT.partition("/")[2]
    target.parent.mkdir(parents=True)
    shutil.copy(version / ANT, target)


IN_A_CASE: Final[dict[str, tuple[str, Forgery]]] = {
    "scaled times": (ANT, first_run(only_times)),
    "scaled times and parts": (ANT, first_run(times_and_parts)),
    "scaled times of a run alone": (START, first_run(times_and_parts)),
    "one slow iteration shortened": (ANT, first_run(one_iteration)),
    "longer iteration": (ANT, first_run(longer_iteration)),
    "scaled run": (ANT, first_run(partial(scale, factor=0.97))),
    "scaled run, by little": (ANT, first_run(partial(scale, factor=0.998))),
    "scaled whole case": (ANT, partial(scale_all, factor=0.97)),
    "slowed whole case": (SHADOW, partial(scale_all, factor=1.03)),
    "scaled run alone": (START, first_run(partial(scale, factor=0.97))),
    "clock of a run shifted": (ANT, first_run(shifted)),
    "clock of a run alone shifted": (START, first_run(shifted)),
    "case a month earlier": (START, started_earlier),
    "copied run": (ANT, partial(copied, change=as_it_is)),
    "copied rank": (SHADOW, first_run(rank_copied)),
    "copied and scaled run": (ANT, partial(copied, change=partial(scale, factor=0.99))),
    "permuted copy": (SHADOW, partial(copied, change=permuted)),
    "smoothed copy": (SHADOW, partial(copied, change=smoothed)),
    "noise copy": (SHADOW, partial(copied, change=partial(noisy, share=0.001))),
    "noise copy alone": (START, partial(copied, change=partial(noisy, share=0.05))),
    "dropped last run": (ANT, partial(drop, index=-1)),
    "dropped first run": (ANT, partial(drop, index=0)),
    "dropped run alone": (START, partial(drop, index=-1)),
    "dropped run, not renumbered": (ANT, lambda document: runs(document).pop(1)),
    "dropped rank": (SHADOW, first_run(lambda run: run["ranks"].pop())),
    "dropped column": (SHADOW, first_run(lose_column)),
    "dropped sample": (ANT, first_run(hole)),
    "dropped policy": (ANT, first_run(lose_policy)),
    "invented run": (ANT, invent),
    "invented run alone": (START, invent),
    "fewer iterations": (SHADOW, shorten),
    "fewer iterations than the case": (ANT, first_run(shorten_run)),
    "exchanged rewards": (ANT, exchange_rewards),
    "higher rewards": (ANT, every_run(lambda run: change_columns(run, "reward_mean", lambda value: value + 10))),
    "longer episodes": (ANT, every_run(lambda run: change_columns(run, "episode_length_mean", lambda _: 9e9))),
    "success above 1": (ANT, every_run(lambda run: change_columns(run, "success_rate", lambda _: 1.5))),
    "completed run called failed": (ANT, first_run(called_failed)),
    "completed run called failed and cut": (ANT, first_run(called_failed_and_cut)),
    "failure without a reason": (ANT, first_run(lambda run: run.update(outcome="lost", reason=None))),
    "skipped run with samples": (ANT, skipped_with_samples),
    "skipped run that started": (SKIPPED, first_run(lambda run: run.update(started_utc="2026-11-28T10:00:00+00:00"))),
    "failure called completed": (ANT, first_run(lambda run: run.update(exit_code=1))),
    "failed check in a completed run": (ANT, first_run(failed_check)),
    "policies differ": (SHADOW, first_run(lambda run: run["ranks"][0].update(parameters_sha256="0" * 64))),
    "marked column": (ANT, every_run(lambda run: change_columns(run, "marked", lambda value: 1 - value))),
    "turn column": (ANT, every_run(lambda run: change_columns(run, "turn", lambda value: max(1, value - 1)))),
    "turns moved": (ANT, every_run(move_turns)),
    "turns longer": (ANT, every_run(longer_turns)),
    "rounds at the same time": (START, at_the_same_time),
    "readings of a shorter run": (ANT, first_run(stretched_readings)),
    "neighbour not named": (ANT, first_run(lambda run: run["turns"].update(beside=[]))),
    "neighbour invented": (ANT, first_run(lambda run: run["turns"]["beside"].append("ant-weak/other"))),
    "run called alone": (ANT, first_run(lambda run: run.update(turns=None))),
    "exchanged GPU": (ANT, other_gpu),
    "exchanged GPU, by ranks too": (ANT, other_gpu_by_ranks_too),
    "fewer GPUs": (SHADOW, lambda document: document["labscale"]["machines"][0]["gpus"].pop()),
    "less GPU memory": (ANT, lambda document: document["labscale"]["machines"][0]["gpus"][0].update(memory_gb=96.0)),
    "other driver": (ANT, partial(machine, driver_version="999.1")),
    "other CUDA": (ANT, partial(machine, cuda_driver_version="12.8")),
    "other processor": (ANT, partial(machine, cpu_model="Z")),
    "other commit": (ANT, partial(machine, git_commit="0" * 40)),
    "no env_check": (ANT, partial(machine, checks=[])),
    "other seed": (ANT, seed),
    "other seed, by ranks too": (SHADOW, seed_everywhere),
    "fewer threads": (ANT, first_run(lambda run: run["ranks"][0]["settings"].update(torch_num_threads=1))),
    "environments": (ANT, lambda document: case_of(document).update(num_envs=2048, num_envs_global=2048)),
    "environments by id": (ANT, lambda document: case_of(document).update(num_envs_global=2048)),
    "packages of a run": (ANT, first_run(lambda run: run["ranks"][0]["settings"].update({"versions.torch": "9"}))),
    "packages of ranks": (ANT, partial(settings, name="versions.torch", value="2.12.0")),
    "packages everywhere": (ANT, packages_everywhere),
    "other task": (ANT, lambda document: case_of(document).update(task="Isaac-Humanoid")),
    "other minibatch": (ANT, lambda document: case_of(document).update(minibatch_size=64)),
    "fingerprint of one run": (ANT, partial(in_work, name="env.scene.robot", value="sha256:0", first=2)),
    "fingerprint of a rule": (ANT, partial(in_work, name="optimiser_steps", value=1)),
    "no fingerprint": (ANT, first_run(lambda run: run.update(workload=None))),
    "fingerprint of a case": (SHADOW, partial(in_work, name="env.scene.robot", value="sha256:0")),
    "fingerprint of a curve of one case": (ANT, partial(in_work, name="env.scene.robot", value="sha256:0")),
    "more peak memory": (ANT, first_run(partial(memory, factor=100.0))),
    "less peak memory": (ANT, first_run(partial(memory, factor=0.5))),
    "longer start-up": (ANT, first_run(partial(phases, factor=2.0))),
    "shorter start-up": (ANT, first_run(partial(phases, factor=0.8))),
    "warm kernels in a cold start": (COLD, every_run(partial(kernels, number=0))),
    "other kernel count": (COLD, every_run(partial(kernels, number=7))),
    "probes scaled": (ANT, every_run(lambda run: change_columns(run, "core_probe_time_s", lambda value: value / 4))),
    "probes below 0": (ANT, every_run(lambda run: change_columns(run, "core_probe_time_s", lambda value: -value))),
    "probes scaled by little": (
        ANT,
        every_run(lambda run: change_columns(run, "core_probe_time_s", lambda value: value * 0.9)),
    ),
    "power halved": (ANT, first_run(partial(half_the_power, energy=False))),
    "power and energy halved": (ANT, first_run(partial(half_the_power, energy=True))),
    "power, energy and readings halved": (ANT, first_run(and_readings)),
    "energy": (ANT, first_run(partial(of_telemetry, energy_j=1.0))),
    "energy counter": (START, first_run(energy_counter)),
    "hidden throttling": (ANT, first_run(hidden_throttling)),
    "frames per joule": (ANT, first_run(partial(of_telemetry, frames_per_joule=1e4))),
    "window": (ANT, first_run(partial(of_telemetry, window_s=1.0))),
    "utilisation": (ANT, first_run(partial(utilisation, factor=2.0))),
    "mean utilisation by little": (ANT, first_run(mean_utilisation)),
    "steal": (ANT, first_run(less_steal)),
    "neighbours' share by little": (ANT, first_run(partial(of_telemetry, host_others_percent=0.5))),
    "neighbours' share": (ANT, first_run(partial(of_telemetry, host_others_percent=60.0))),
    "readings left out": (ANT, first_run(lambda run: run.update(readings=[]))),
    "why it ended": (ANT, lambda document: document["labscale"].update(ended_because=None)),
}  # fmt: skip
IN_A_VERSION: Final[dict[str, Callable[[Path], object]]] = {
    "dropped case": lambda version: (version / SHADOW).unlink(),
    "dropped neighbour": lambda version: (version / BESIDE).unlink(),
    "dropped plan": lambda version: (version / "h200-first/plan.json").unlink(),
    "case moved to another set": move_sets,
    "case under another name": lambda version: (version / ANT).rename(version / ANT.replace("1024", "2048")),
}
NOT_TO_BE_FOUND: Final = frozenset({
    "clock of a run alone shifted", "completed run called failed and cut", "exchanged rewards",
    "fingerprint of a curve of one case", "higher rewards", "less peak memory", "mean utilisation by little",
    "neighbours' share by little", "other kernel count", "power, energy and readings halved",
    "probes scaled by little", "shorter start-up", "steal",
})  # fmt: skip
# What some rules say, so that another rule that happens to find the same forgery does not do for them.
WORDS: Final = {
    "scaled run": "in a turn of",
    "scaled run alone": "energy_j over the window",
    "copied run": "up to order and a factor",
    "copied rank": "up to order and a factor",
    "permuted copy": "up to order and a factor",
    "smoothed copy": "varying as those of",
    "noise copy": "varying as those of",
    "case a month earlier": "before its commit",
    "fewer iterations": "in iterations",
    "turn column": "the numbers of its turns",
    "turns longer": "iterations of turn 1",
    "neighbour not named": "the neighbours of",
    "dropped neighbour": "neighbours in turns",
    "power and energy halved": "power_w over the window",
    "readings of a shorter run": "its times",
    "packages everywhere": "versions.torch of its ranks",
    "rounds at the same time": "at the same time as",
    "longer iteration": "until the next began",
    "dropped run, not renumbered": "the numbers of the rounds",
    "hidden throttling": "throttled_share",
    "case under another name": "the file's name",
}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version of three real sets, in a git repository that knows the commits of this one."""
    root = tmp_path_factory.mktemp("real")
    version = root / "reports" / "results" / "2026.12"
    for name in SETS:
        shutil.copytree(COMMITTED / "2026.12" / name, version / name)
    (version / "report.toml").write_text("".join(f'[[set]]\nfolder = "{name}"\n' for name in SETS))
    write_all_hashes(version)
    subprocess.run(["git", "init", "--quiet", "--template=", root], check=True)
    asked = ["git", "-C", str(COMMITTED), "rev-parse", "--path-format=absolute", "--git-path", "objects"]
    objects = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    alternates = root / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(objects)
    return version


@pytest.fixture
def version(real: Path, tmp_path: Path) -> Path:
    shutil.copytree(real.parents[2], tmp_path, dirs_exist_ok=True)
    return tmp_path / "reports" / "results" / "2026.12"


def test_the_real_sets_have_no_fault(real: Path) -> None:
    assert sentences(real) == []


@pytest.mark.parametrize("name", [*IN_A_CASE, *IN_A_VERSION])
def test_a_forgery_is_found_or_known_not_to_be(version: Path, name: str) -> None:
    if name in IN_A_CASE:
        file, change = IN_A_CASE[name]
        document = json.loads((version / file).read_text())
        change(document)
        fit_figures(document)
        (version / file).write_text(json.dumps(document))
    else:
        IN_A_VERSION[name](version)
    write_all_hashes(version)
    named = sentences(version)
    assert (not named) == (name in NOT_TO_BE_FOUND), named
    assert any(WORDS.get(name, "") in sentence for sentence in named) or name in NOT_TO_BE_FOUND, named


def test_every_name_is_of_a_forgery() -> None:
    assert {*IN_A_CASE, *IN_A_VERSION} >= NOT_TO_BE_FOUND | WORDS.keys()
