"""Make the cases of a matrix from its tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from suite.matrix.catalog import AgentEntry, Catalog, TaskEntry
from suite.matrix.resources import UNBOUNDED
from suite.matrix.tables import Matrix, Series, Topology
from suite.schema.record import (
    COLD_SUFFIX,
    LEARNING_SUFFIX,
    Assets,
    Case,
    Device,
    MinibatchRule,
    RlLibrary,
    Stack,
    agent_library_of,
)


@dataclass(frozen=True, kw_only=True)
class Minibatch:
    """The minibatch of one rank. It may not divide the batch, or be 0; the plan refuses such a case."""

    size: int  # samples
    count: int  # per learning epoch


def expand(
    matrix: Matrix,
    catalog: Catalog,
    *,
    device: Device,
    stack: Stack | None = None,
    assets: Assets,
    seed: int | None = None,
) -> list[Case]:
    """Return all cases of a matrix in its order, also infeasible ones; the plan gives the reasons.

    ``stack`` replaces the stacks of every series, and ``seed`` that of the matrix. If environments do not divide by
    the world size, ``num_envs`` is rounded down, and the plan refuses the case.
    """
    return [
        _case(matrix, catalog, point, library, chosen, topology, device=device, assets=assets, seed=seed)
        for series in matrix.series
        for point, library, chosen, topology in points(series, stack)
    ]


def points(series: Series, stack: Stack | None = None) -> Iterator[tuple[Series, RlLibrary, Stack, Topology]]:
    """Yield every point of a table, with the table for its number of environments and versions of packages."""
    stacks: tuple[Stack, ...] = series.stacks if stack is None else (stack,)
    for library in series.rl_libraries:
        for chosen in stacks:
            for topology in series.topologies:
                for num_envs in (series.num_envs, *series.num_envs_more):
                    for table in series.model_copy(update={"num_envs": num_envs}).with_each_version():
                        yield table, library, chosen, topology


def _ranks(topology: Topology) -> tuple[int, int]:
    """Split ``2x8`` into nnodes and nproc_per_node; ``all`` is a number that no node has."""
    nnodes, nproc_per_node = topology.replace("all", str(UNBOUNDED.gpus_per_node)).split("x")
    return int(nnodes), int(nproc_per_node)


def _num_envs_global(series: Series, topology: Topology) -> int:
    nnodes, nproc_per_node = _ranks(topology)
    if series.scaling == "strong" or series.workload == "async_pipeline":  # which has one process that simulates
        return series.num_envs
    return series.num_envs * nnodes * nproc_per_node * series.trainings_per_gpu


def case_id_of(series: Series, library: RlLibrary, stack: Stack, topology: Topology, device: Device) -> str:
    where = f"{stack}-cpu" if device == "cpu" else stack
    variant = "-fixed_updates" if series.minibatch_rule == "fixed_updates" else ""
    variant += f"-{series.variant}" if series.variant else ""
    variant += COLD_SUFFIX if series.kernel_cache == "empty" else ""
    return f"{series.name}/{library}-{where}-n{_num_envs_global(series, topology)}-{topology}{variant}"


def _case(
    matrix: Matrix,
    catalog: Catalog,
    series: Series,
    library: RlLibrary,
    stack: Stack,
    topology: Topology,
    *,
    device: Device,
    assets: Assets,
    seed: int | None,
) -> Case:
    task = catalog.resolve(series.task)
    agent_library = agent_library_of(series.workload, library)
    agent = task.agents[agent_library]
    nnodes, nproc_per_node = _ranks(topology)
    world_size = nnodes * nproc_per_node
    num_envs_global = _num_envs_global(series, topology)
    simulating = 1 if series.workload == "async_pipeline" else world_size * series.trainings_per_gpu
    num_envs = num_envs_global // simulating
    num_steps_per_env = series.num_steps_per_env or agent.num_steps_per_env
    minibatch = minibatch_per_rank(
        agent,
        rule=series.minibatch_rule,
        single_rank_batch=series.num_envs * num_steps_per_env,
        batch=num_envs * num_steps_per_env,
        ranks_sharing=world_size if series.scaling == "strong" else 1,
        minibatch_size=series.minibatch_size,
    )
    return Case(
        case_id=case_id_of(series, library, stack, topology, device)
        + (LEARNING_SUFFIX if matrix.only_learning else ""),
        series=series.name,
        scaling=series.scaling,
        task=task.task,
        rl_library=library,
        stack=stack,
        device=device,
        nnodes=nnodes,
        nproc_per_node=nproc_per_node,
        num_envs=num_envs,
        num_envs_global=num_envs_global,
        num_steps_per_env=num_steps_per_env,
        iterations=series.iterations,
        minibatch_rule=series.minibatch_rule,
        minibatch_size=minibatch.size,
        optimiser_steps=minibatch.count * agent.learning_epochs,
        seed=matrix.seed if seed is None else seed,
        seed_per_round=matrix.seed_per_round,
        assets=assets,
        presets=catalog.stacks[stack].presets_for(task),
        overrides=(*_agent_overrides(catalog, series, task, agent_library, minibatch), *series.overrides),
        timeout_s=series.timeout_s or matrix.defaults.timeout_s,
        hang_timeout_s=series.hang_timeout_s or matrix.defaults.hang_timeout_s,
        workload=series.workload,
        division=series.division,
        cpu_threads=series.cpu_threads,
        pin_cpus=series.pin_cpus,
        deterministic=series.deterministic,
        trainings_per_gpu=series.trainings_per_gpu,
        only_learning=matrix.only_learning,
        kernel_cache=series.kernel_cache,
        with_packages=tuple(sorted(series.with_packages)),
    )


def _agent_overrides(
    catalog: Catalog, series: Series, task: TaskEntry, library: RlLibrary, minibatch: Minibatch
) -> tuple[str, ...]:
    """Hydra tokens for values other than the agent's defaults: at the defaults a case runs as upstream ships it."""
    agent = task.agents[library]
    entry = catalog.libraries[library]
    templates: tuple[str, ...] = ()
    if series.num_steps_per_env is not None:
        templates += (entry.num_steps_override,)
    if agent.minibatch_size not in {None, minibatch.size} or agent.num_minibatches not in {None, minibatch.count}:
        templates += entry.minibatch_overrides + agent.minibatch_overrides
    values = {
        "num_steps_per_env": series.num_steps_per_env,
        "minibatch_size": minibatch.size,
        "num_minibatches": minibatch.count,
    }
    return tuple(template.format_map(values) for template in templates)


def minibatch_per_rank(
    agent: AgentEntry,
    *,
    rule: MinibatchRule,
    single_rank_batch: int,
    batch: int,
    ranks_sharing: int,
    minibatch_size: int | None,
) -> Minibatch:
    """Return the minibatch of one rank that collects ``batch`` samples per iteration.

    Both rules start from a single rank, which would collect ``single_rank_batch`` samples. Its minibatch size is
    ``minibatch_size``, else the agent's, else (for a library that counts minibatches) its batch divided by the agent's
    count. ``fixed_minibatch`` keeps that size on every rank: the same minibatch, fewer optimiser steps.
    ``fixed_updates`` divides it by the ranks that share the work: the same steps, smaller minibatches. In a weak
    series ranks share nothing, ``ranks_sharing`` is 1, and both rules give the same.
    """
    fixed_updates = rule == "fixed_updates"
    reference_size = minibatch_size or agent.minibatch_size
    if reference_size is None:
        count = agent.num_minibatches or 1
        if fixed_updates or ranks_sharing == 1:
            return Minibatch(size=batch // count, count=count)
        reference_size = single_rank_batch // count
    size = reference_size // ranks_sharing if fixed_updates else reference_size
    return Minibatch(size=size, count=batch // size if size else 0)
