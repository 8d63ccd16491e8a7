"""Add tasks that the catalog does not have: the worker describes them, and they become entries of the catalog.

Isaac Lab and installed extensions register tasks with agents, which set the length of a rollout and its minibatches.
The cost of a task is learned from finished rounds.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from suite.errors import MatrixError, StoreError, WorkerEnvironmentError
from suite.external import parent_death
from suite.files.json_file import explained, read_json_or_none, replace_json
from suite.files.paths import import_path
from suite.files.toml_file import TomlTable, Tuple
from suite.files.wording import last_lines
from suite.install.pins import sha256
from suite.install.worker_packages import FACTS
from suite.matrix.catalog import AgentEntry, Catalog, CostEntry, TaskEntry
from suite.records import store
from suite.schema.rank_protocol import last_answer
from suite.schema.record import RlLibrary, RunRecord, Stack
from suite.statistics.reduce import round_time_s

MODULE: Final = "tasks.registered"
SOURCES: Final = ("tasks/registered.py", "tasks/rank/configuration.py")


class Answer(TomlTable):
    """The worker's description of one task."""

    task: str
    registered: Tuple[str] = ()  # every registered id, if the task is not among them
    cannot_load: str | None = None  # why the tasks cannot be registered: they need Isaac Sim
    agents: dict[RlLibrary, AgentEntry] = Field(default_factory=dict)
    cameras: bool = False
    obstacles: dict[Stack, str] = Field(default_factory=dict)  # why a stack does not run it


class Answers(TomlTable):
    """What ``tasks.registered`` prints."""

    answers: Tuple[Answer]


def unknown_tasks(tasks: Sequence[str], catalog: Catalog) -> list[str]:
    """The tasks that the catalog does not have, each once."""
    names = {name for entry in catalog.tasks.values() for name in (entry.task, *entry.aliases)}
    return [task for task in dict.fromkeys(tasks) if task not in names]


def with_answers(catalog: Catalog, answers: Sequence[Answer], *, out: Path) -> Catalog:
    """Return the catalog with the registered tasks, and with all registered ids if a task is not among them.

    ``out`` is the campaign's folder, whose rounds give the cost of a task. Raises MatrixError if a task cannot load.
    """
    for answer in answers:
        if answer.cannot_load:
            raise MatrixError(
                f"The worker cannot register {answer.task}: an installed extension needs Isaac Sim "
                f"({answer.cannot_load}). Run it with the Python of an Isaac Sim installation (--worker-python), or "
                "make the extension import Isaac Sim only where it uses it."
            )
    tasks = {
        answer.task: TaskEntry(
            task=answer.task,
            aliases=(),
            cameras=answer.cameras,
            differences=(),
            agents=answer.agents,
            costs=tuple(measured_costs(out, answer.task)),
            obstacles=answer.obstacles,
        )
        for answer in answers
        if not answer.registered
    }
    others = tuple(sorted({name for answer in answers for name in answer.registered}))
    return catalog.model_copy(update={"tasks": {**catalog.tasks, **tasks}, "others": others})


def ask(tasks: Sequence[str], *, python: Path, project_root: Path, catalog: Catalog, keep: bool) -> tuple[Answer, ...]:
    """Ask the worker about tasks. ``keep`` stores the answers in its environment, if that never changes.

    Raises:
        WorkerEnvironmentError: it gave no valid answer.
    """
    presets = {  # of a stack for tasks without cameras, and for tasks with cameras
        name: [entry.presets, entry.presets if entry.camera_presets is None else entry.camera_presets]
        for name, entry in catalog.stacks.items()
    }
    stacks = json.dumps(presets)
    sources = [sha256(project_root / source) for source in SOURCES]
    folder = python.parent.parent / FACTS

    def path(task: str) -> Path:
        return folder / f"{hashlib.sha256(json.dumps([task, stacks, *sources]).encode()).hexdigest()[:16]}.json"

    kept = {task: answer for task in tasks if keep and (answer := read_json_or_none(path(task), Answer))}
    if left := [task for task in tasks if task not in kept]:
        for answer in _asked([str(python), "-m", MODULE, stacks, *left], project_root):
            kept[answer.task] = answer
            if keep and not answer.registered:  # there is no answer to keep for an unknown task
                folder.mkdir(exist_ok=True)
                replace_json(answer.model_dump(mode="json"), path(answer.task))
    return tuple(kept[task] for task in tasks)


def _asked(argv: Sequence[str], project_root: Path) -> tuple[Answer, ...]:
    variables = import_path(project_root, os.environ.get("PYTHONPATH"))
    done = parent_death.run(argv, variables | {"CUDA_VISIBLE_DEVICES": ""})
    try:
        return Answers.model_validate(last_answer(done.stdout)).answers
    except ValidationError as error:
        why = last_lines(done.stderr) if done.returncode else explained(error)
        raise WorkerEnvironmentError(
            f"The worker could not list its registered tasks, exit code {done.returncode}:\n{why}\n"
            f"The command was PYTHONPATH={project_root} {shlex.join(argv)}"
        ) from None


def measured_costs(out: Path, task: str) -> Iterator[CostEntry]:
    """Measured costs of a task in a campaign's folder: for each case that of the last completed round.

    Raises:
        StoreError: a record of the campaign is damaged or has impossible times.
    """
    for folder in sorted({path.parent.parent for path in out.glob("raw/*/*/r*/record.json")}):
        first, *others = sorted(folder.glob("r*/record.json"))
        records = {first: store.read_record(first)}
        if records[first].case.task != task:
            continue
        records |= {path: store.read_record(path) for path in others}
        completed = [
            (record.round, path, record.wall_time_s)
            for path, record in records.items()
            if record.counts
            and record.wall_time_s is not None
            and record.case.learns
            and record.case.trainings_per_gpu == 1
            and not record.case.only_learning
        ]
        for _, path, wall_time_s in sorted(completed)[-1:]:
            yield _cost_in(path, records[path], wall_time_s)


def _cost_in(path: Path, record: RunRecord, wall_time_s: float) -> CostEntry:
    case = record.case
    try:
        iteration_s = round_time_s(record)
        return CostEntry(
            device=case.device,
            rl_library=case.rl_library,
            stack=case.stack,
            world_size=case.world_size,
            num_envs=case.num_envs,
            num_steps_per_env=case.num_steps_per_env,
            start_up_s=max(wall_time_s - case.iterations * iteration_s, iteration_s),
            iteration_s=iteration_s,
            source=f"run {record.round} of {case.case_id}",
        )
    except ValidationError as error:
        raise StoreError(f"{path} cannot be true: {explained(error)}. {store.AGAIN_ROUND}") from None
