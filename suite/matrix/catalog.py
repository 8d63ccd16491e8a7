"""Tasks, RL libraries and stacks as ``tasks/catalog.toml`` describes them."""

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Self, get_args

from pydantic import Field, StringConstraints, model_validator

from suite.errors import MatrixError
from suite.files.toml_file import Fault, NonEmptyTuple, TomlTable, Tuple, did_you_mean, read_toml
from suite.schema.record import Case, Device, RlLibrary, Stack

CATALOG_PATH = Path(__file__).parents[2] / "tasks" / "catalog.toml"

# Limits far beyond any machine, so that numbers computed from these stay finite and printable.
type Count = Annotated[int, Field(gt=0, le=10**9)]
type NumEnvs = Annotated[int, Field(gt=0, le=10**7)]
type NumSteps = Annotated[int, Field(gt=0, le=10**4)]
type Seconds = Annotated[float, Field(gt=0, le=10**8)]
# Hydra tokens with one placeholder.
type StepsToken = Annotated[str, StringConstraints(pattern=r"^[^{}]*\{num_steps_per_env\}[^{}]*$")]
type MinibatchToken = Annotated[str, StringConstraints(pattern=r"^[^{}]*\{(minibatch_size|num_minibatches)\}[^{}]*$")]


class LibraryEntry(TomlTable):
    """How an RL library takes its settings."""

    num_steps_override: StepsToken
    minibatch_overrides: NonEmptyTuple[MinibatchToken]
    reserved_keys: Tuple[str] = ()  # Hydra keys a matrix may not override, besides those above
    one_process: bool = False  # it cannot train on several ranks
    equal_minibatches: bool = False  # of a batch that its number of minibatches does not divide, it makes unequal ones


class StackEntry(TomlTable):
    presets: Tuple[str]
    camera_presets: Tuple[str] | None = None  # instead of ``presets`` for tasks that render
    devices: NonEmptyTuple[Device]
    worker_packages: Tuple[str] = ()  # requirements beyond the worker's own
    tasks: Tuple[str] | None = None  # None means all
    image: str | None = None  # container image with the stack

    def presets_for(self, task: "TaskEntry") -> tuple[str, ...]:
        return self.camera_presets if task.cameras and self.camera_presets is not None else self.presets


class LearningReference(TomlTable):
    """A reward that every sound run of one size reaches by an iteration. A round below it is not a measurement.

    Learning depends on the samples that all ranks collect in an iteration, on the optimiser's steps and on the physics.
    It also depends on the number of ranks if each rank learns some part alone.
    """

    stack: Stack  # of the runs that it was made from
    world_size: Count | None = None  # valid for this number of ranks; None if all learn together
    frames_per_iteration: Count  # of all ranks
    optimiser_steps: Count  # of an iteration
    iterations: Count
    reward_at_least: float
    source: str  # the committed results that it comes from


class AgentEntry(TomlTable):
    """Defaults of the agent that Isaac Lab registers for a task and library.

    A library fixes either the size of a minibatch (samples per rank) or the number of minibatches per epoch.
    """

    num_steps_per_env: NumSteps
    minibatch_size: Count | None = None
    num_minibatches: Count | None = None
    learning_epochs: Count
    minibatch_overrides: Tuple[MinibatchToken] = ()  # in addition to the library's
    learning_references: Tuple[LearningReference] = ()  # a case without one of its size has no check of learning

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if (self.minibatch_size is None) == (self.num_minibatches is None):
            raise ValueError("should have either minibatch_size or num_minibatches")
        return self


class CostEntry(TomlTable):
    """A measured process, from which plans estimate costs. ``num_envs`` is per rank."""

    device: Device
    rl_library: RlLibrary
    stack: Stack = "kitless"
    world_size: Count | None = None  # valid for this number of ranks; None: for any
    num_envs: NumEnvs
    num_steps_per_env: NumSteps
    start_up_s: Seconds
    iteration_s: Seconds
    optimiser_steps: Count | None = None  # of an iteration, if the time of one is known
    optimiser_step_s: Seconds | None = None
    source: str

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.optimiser_steps is None) != (self.optimiser_step_s is None):
            raise ValueError("should have both optimiser_steps and optimiser_step_s, or neither")
        if self._learning_s(self.optimiser_steps) >= self.iteration_s:
            raise ValueError("should have optimiser steps that take less than iteration_s together")
        return self

    def iteration_of_s(self, case: Case) -> float:
        """Estimate how long an iteration of a case takes [s], at most: a part of it does not grow with environments.

        The rollout is proportional to steps and environments, but with fewer environments never faster than measured.
        The time of optimiser steps, if known, depends only on their number: tuned agents take few steps for many
        environments.
        """
        if case.workload == "all_reduce":
            return 0.0015  # Cartpole's gradient on four H200s, h200-x4-controls of 2026.11
        scale = max(1.0, case.num_envs / self.num_envs) * case.num_steps_per_env / self.num_steps_per_env
        rollout_s = self.iteration_s - self._learning_s(self.optimiser_steps)
        return rollout_s * scale + self._learning_s(case.optimiser_steps if case.learns else 0)

    def _learning_s(self, optimiser_steps: int | None) -> float:
        return (optimiser_steps or 0) * (self.optimiser_step_s or 0.0)


class MemoryEntry(TomlTable):
    """What a rank of a task takes of its GPU's memory, at the most of all libraries and stored results."""

    stack: Stack = "kitless"
    start_gb: Annotated[float, Field(gt=0, le=1000)]  # without environments
    per_1000_envs_gb: Annotated[float, Field(ge=0, le=1000)]
    source: str


class TaskTable(TomlTable):
    """A task in the file."""

    aliases: Tuple[str]
    cameras: bool
    differences: NonEmptyTuple[str]  # from the 2.x task of the alias; each is a sentence
    agents: dict[RlLibrary, AgentEntry]
    costs: Tuple[CostEntry] = ()
    gpu_memory: Tuple[MemoryEntry] = ()  # a stack without one is measured alone once
    ranks_learn_alone: str | None = None  # the part that ranks do not share, in words

    @model_validator(mode="after")
    def _references_say_ranks(self) -> Self:
        for reference in (entry for agent in self.agents.values() for entry in agent.learning_references):
            if (reference.world_size is None) != (self.ranks_learn_alone is None):
                raise ValueError(
                    "should have learning_references with world_size where ranks_learn_alone, and there only"
                )
        return self


class TaskEntry(TaskTable):
    """A task, from the file or as the worker registers it."""

    task: str  # its Gym id, the name of its table
    differences: Tuple[str]
    obstacles: dict[Stack, str] | None = None  # why a stack does not run it; None: the stacks' tables say which do

    def cost_of(self, case: Case) -> CostEntry | None:
        """Return the measurement by which an iteration of a case is shortest; None if its device has none.

        The device is always the same; stack, library and number of ranks are the same if such a measurement exists. A
        stack without one uses those of ``kitless``, and a library without one those of the first library that has some.
        Each of the rest says how long an iteration takes at most.
        """
        on_device = [entry for entry in self.costs if entry.device == case.device]
        costs = [entry for entry in on_device if entry.stack == case.stack]
        costs = costs or [entry for entry in on_device if entry.stack == "kitless"]
        costs = [entry for entry in costs if entry.rl_library == case.rl_library] or [
            entry for entry in costs if entry.rl_library == costs[0].rl_library
        ]
        costs = [entry for entry in costs if entry.world_size in (None, case.world_size)] or costs
        return min(costs, key=lambda entry: entry.iteration_of_s(case), default=None)


class CatalogTable(TomlTable):
    """The tables of the file."""

    libraries: dict[RlLibrary, LibraryEntry]
    stacks: dict[Stack, StackEntry]
    tasks: Mapping[str, TaskTable]  # by id of Isaac Lab 3.0


class Catalog(CatalogTable):
    tasks: Mapping[str, TaskEntry]
    others: Tuple[str] = ()  # ids that the worker registers, if it was asked about an unknown one

    def learning_references(self, task: str, rl_library: RlLibrary) -> tuple[LearningReference, ...]:
        """Return the learning references of a task and library; () for an unknown task."""
        agent = self.tasks[task].agents.get(rl_library) if task in self.tasks else None
        return agent.learning_references if agent else ()

    def ranks_of_learning(self, case: Case) -> int | None:
        """The number of ranks that learning depends on: the world size, or None if all ranks learn together."""
        return case.world_size if case.task in self.tasks and self.tasks[case.task].ranks_learn_alone else None

    def gpu_memory_gb(self, case: Case) -> float | None:
        """Memory of each GPU that a case takes [GB]; None if nobody measured its task and stack."""
        for entry in self.tasks[case.task].gpu_memory if case.task in self.tasks else ():
            if entry.stack == case.stack:
                return entry.start_gb + entry.per_1000_envs_gb * case.num_envs / 1000
        return None

    def resolve(self, task_id: str) -> TaskEntry:
        """Return the task with this id or this alias from Isaac Lab 2.x. Raises MatrixError if there is none."""
        for entry in self.tasks.values():
            if task_id in (entry.task, *entry.aliases):
                return entry
        names = [name for entry in self.tasks.values() for name in (entry.task, *entry.aliases)]
        if self.others:
            near = ", ".join(difflib.get_close_matches(task_id, {*names, *self.others}, n=5))
            raise MatrixError(
                f"unknown task {task_id!r}: neither Isaac Lab nor an installed extension registers it"
                f"{near and '; near ones are ' + near}. A task of an extension needs --worker-package with the "
                "extension, which must name its module as an entry point of the group isaaclab.tasks."
            )
        listed = "; ".join(f"{entry.task} (also {', '.join(entry.aliases)})" for entry in self.tasks.values())
        raise MatrixError(f"unknown task {task_id!r}; known are {listed}.{did_you_mean(task_id, names)}")


@cache
def load_catalog(path: Path = CATALOG_PATH) -> Catalog:
    """Read a catalog once, by default labscale's own: pages ask for it thousands of times.

    Raises MatrixError with every problem of the file. Tables are compared only once each is valid by itself.
    """
    file = read_toml(path)
    table = file.validate(CatalogTable)
    if faults := list(_contradictions(table)):
        raise file.error(faults)
    tasks = {task: TaskEntry(task=task, **dict(entry)) for task, entry in table.tasks.items()}
    return Catalog(**{**dict(table), "tasks": tasks})


def _contradictions(table: CatalogTable) -> Iterator[Fault]:
    names = [name for task, entry in table.tasks.items() for name in (task, *entry.aliases)]
    for task, entry in table.tasks.items():
        if twice := [alias for alias in entry.aliases if names.count(alias) > 1]:
            yield ("tasks", task, "aliases"), f"got {', '.join(twice)}; should have one task for an id or alias."
    for stack, of_stack in table.stacks.items():
        if unknown := [task for task in of_stack.tasks or () if task not in table.tasks]:
            yield ("stacks", stack, "tasks"), f"got {', '.join(unknown)}; should be ids of tables [tasks.…]."
    for key, there, wanted in (("libraries", table.libraries, RlLibrary), ("stacks", table.stacks, Stack)):
        if missing := [name for name in get_args(wanted) if name not in there]:
            yield (key,), f"lacks {', '.join(missing)}; should have a table for each."
