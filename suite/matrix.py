"""Matrix files, which say what a campaign measures: read one, expand it to cases, select among them."""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from suite.catalog import Catalog, Count, Seconds, TaskEntry
from suite.errors import MatrixError
from suite.minibatch import Minibatch, minibatch_per_rank
from suite.schema import Assets, Case, Device, Division, MinibatchRule, RlLibrary, Scaling, Stack, Workload
from suite.toml_file import NonEmptyTuple, Problem, TomlTable, Tuple, did_you_mean, read_toml

MATRICES_PATH = Path(__file__).parent.parent / "tasks" / "matrices"

type Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]  # also a folder's name
type Topology = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*x[1-9][0-9]*$")]  # nnodes x nproc_per_node
type Fraction = Annotated[float, Field(gt=0, lt=1)]
type Override = Annotated[str, StringConstraints(pattern=r"^(env|agent)\.[^=]+=.+$")]


class Series(TomlTable):
    """A ``[[series]]`` table. Tables of the same name add points to one series."""

    name: Name
    title: str
    scaling: Scaling
    task: str  # id of Isaac Lab 3.0 or an alias
    rl_libraries: NonEmptyTuple[RlLibrary]
    num_envs: Count  # of all ranks for strong scaling, per rank for weak
    num_envs_more: Tuple[Count] = ()  # a sweep: the table again for each of these
    topologies: NonEmptyTuple[Topology]
    iterations: Count
    minibatch_rule: MinibatchRule = "fixed_minibatch"
    minibatch_size: Count | None = None  # samples per rank; under fixed_updates those of a single rank
    num_steps_per_env: Count | None = None  # None takes the agent's
    timeout_s: Seconds | None = None
    hang_timeout_s: Seconds | None = None
    overrides: Tuple[Override] = ()
    stacks: NonEmptyTuple[Stack] = ("kitless",)
    division: Division = "closed"  # open: tuned, each table under a variant of its own
    variant: Name | None = None  # ends the case ids of a table
    cpu_threads: Count | None = None
    pin_cpus: bool = False
    workload: Workload = "train"  # else a control; those that do not learn have rsl_rl's agent of the task


class Defaults(TomlTable):
    """What a series has that does not say otherwise."""

    timeout_s: Seconds = 1800.0
    hang_timeout_s: Seconds = 300.0


class MatrixTable(TomlTable):
    """The file."""

    description: str
    rounds: Count  # fresh processes per case; with a precision the fewest
    precision: Fraction | None = None  # go on until the median is known to this half-width, see suite.repeats
    max_rounds: Count | None = None  # of a case, with a precision
    a_a: bool = False  # run the baseline of every series twice, see suite.a_a
    seed: Annotated[int, Field(ge=0)]
    defaults: Defaults = Defaults()
    series: NonEmptyTuple[Series]


class Matrix(MatrixTable):
    name: str  # of the file, without suffix


def load_matrix(name_or_path: str | Path, catalog: Catalog) -> Matrix:
    """Read ``tasks/matrices/<name>.toml`` or a file given by its path (one that ends in .toml).

    Raises MatrixError with every problem of the file, each with its line.
    """
    file = read_toml(_matrix_path(name_or_path))
    table = file.validate(MatrixTable)
    problems = [
        problem
        for index, series in enumerate(table.series)
        for problem in _series_problems(series, catalog, ("series", index))
    ]
    if not problems:
        problems = [*_rounds_problems(table), *_division_problems(table), *_contradictions(table)]
    if problems:
        raise file.error(problems)
    return Matrix(name=file.path.stem, **dict(table))


def expand(
    matrix: Matrix,
    catalog: Catalog,
    *,
    device: Device,
    stack: Stack | None = None,
    assets: Assets,
    seed: int | None = None,
) -> list[Case]:
    """All cases of a matrix in its order, infeasible ones included: the plan says why they are.

    ``stack`` replaces the stacks of every series, ``seed`` the matrix's. Where environments do not divide by the world
    size, ``num_envs`` is rounded down, and the plan refuses the case.
    """
    return [
        _case(matrix, catalog, point, library, chosen, topology, device=device, assets=assets, seed=seed)
        for series in matrix.series
        for point, library, chosen, topology in _points(series, stack)
    ]


def with_num_envs(
    matrix: Matrix,
    catalog: Catalog,
    num_envs: int,
    *,
    series: str,
    device: Device,
    stack: Stack | None = None,
    assets: Assets,
    seed: int | None = None,
) -> list[Case]:
    """Return the cases of a series as they are with another number of environments, each once."""
    tables = tuple(
        table.model_copy(update={"num_envs": num_envs, "num_envs_more": ()})
        for table in matrix.series
        if table.name == series
    )
    changed = matrix.model_copy(update={"series": tables})
    cases = expand(changed, catalog, device=device, stack=stack, assets=assets, seed=seed)
    return list({case.case_id: case for case in cases}.values())


def select(
    cases: Sequence[Case],
    *,
    series: Sequence[str] = (),
    case_glob: Sequence[str] = (),
    rl_library: Sequence[str] = (),
    gpus: Collection[int] = (),
) -> list[Case]:
    """Cases that match every criterion given; of the patterns within one criterion any may match.

    ``series`` and ``case_glob`` are fnmatch patterns of series names and case ids. ``gpus`` lists the world sizes
    wanted (the plan refuses those the machine has no room for). An empty criterion takes all. Raises MatrixError when
    nothing is left, listing what exists.
    """
    chosen = [
        case
        for case in cases
        if (not series or any(fnmatchcase(case.series, pattern) for pattern in series))
        and (not case_glob or any(fnmatchcase(case.case_id, pattern) for pattern in case_glob))
        and (not rl_library or case.rl_library in rl_library)
        and (not gpus or case.world_size in gpus)
    ]
    if not chosen:
        criteria = {"series": series, "case": case_glob, "RL library": rl_library, "GPUs": sorted(gpus)}
        asked = "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in criteria.items() if values)
        raise MatrixError(f"no case matches {asked or 'an empty matrix'}.{_what_exists(cases)}")
    return chosen


def _what_exists(cases: Sequence[Case]) -> str:
    """Every value that a criterion could have."""
    series = ", ".join(dict.fromkeys(case.series for case in cases))
    libraries = ", ".join(dict.fromkeys(case.rl_library for case in cases))
    world_sizes = ", ".join(map(str, sorted({case.world_size for case in cases})))
    ids = "".join(f"\n  {case.case_id}" for case in cases)
    return f" Series: {series}. RL libraries: {libraries}. GPUs: {world_sizes}. Cases:{ids}"


def _matrix_path(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return path
    named = MATRICES_PATH / f"{name_or_path}.toml"
    if not named.is_file():
        names = sorted(file.stem for file in MATRICES_PATH.glob("*.toml"))
        hint = did_you_mean(str(name_or_path), names)
        raise MatrixError(
            f"unknown matrix {str(name_or_path)!r}; there are {', '.join(names)}, or give a path ending in .toml.{hint}"
        )
    return named


def _series_problems(series: Series, catalog: Catalog, location: tuple[int | str, ...]) -> Iterator[Problem]:
    """What a series asks of the catalog that it does not have, and overrides that belong to labscale."""
    try:
        task = catalog.resolve(series.task)
    except MatrixError as error:
        yield Problem(location=(*location, "task"), message=str(error))
        return
    if missing := [library for library in series.rl_libraries if library not in task.agents]:
        message = f"got {', '.join(missing)}; {task.task} has agents for {', '.join(task.agents)}."
        yield Problem(location=(*location, "rl_libraries"), message=message)
    if missing_stacks := [stack for stack in series.stacks if stack not in catalog.stacks]:
        message = f"got {', '.join(missing_stacks)}; should be among {', '.join(catalog.stacks)}."
        yield Problem(location=(*location, "stacks"), message=message)
    reserved = {key for library in series.rl_libraries for key in _reserved_keys(catalog, task, library)}
    for override in series.overrides:
        if override.split("=")[0] in reserved:
            message = (
                f"got {override!r}; labscale sets it itself, so that the case says what runs: use the matrix's keys."
            )
            yield Problem(location=(*location, "overrides"), message=message)


def _reserved_keys(catalog: Catalog, task: TaskEntry, library: RlLibrary) -> set[str]:
    """Hydra keys that follow from a Case's own fields."""
    entry = catalog.libraries[library]
    extra = task.agents[library].minibatch_overrides if library in task.agents else ()
    tokens = (entry.num_steps_override, *entry.minibatch_overrides, *extra)
    return {token.split("=")[0] for token in tokens} | {*entry.reserved_keys, "env.scene.num_envs", "env.seed"}


def _rounds_problems(table: MatrixTable) -> Iterator[Problem]:
    if table.max_rounds is None:
        return
    if table.precision is None:
        message = f"got {table.max_rounds} without a precision to stop at before; add one, or leave it out."
        yield Problem(location=("max_rounds",), message=message)
    elif table.max_rounds < table.rounds:
        message = f"got {table.max_rounds}; should be at least rounds, which is {table.rounds}."
        yield Problem(location=("max_rounds",), message=message)


def _division_problems(table: MatrixTable) -> Iterator[Problem]:
    """What is tuned says so, in its division and in its name, and stands beside what it is tuned against."""
    closed = {(series.name, library) for series in table.series for library in series.rl_libraries if _closed(series)}
    for index, series in enumerate(table.series):
        tuned = [key for key in ("variant", "cpu_threads", "pin_cpus") if getattr(series, key)]
        if _closed(series):
            for key in tuned:
                message = f"got {getattr(series, key)!r} in the closed division, which is as upstream ships it; open?"
                yield Problem(location=("series", index, key), message=message)
            continue
        if series.variant is None:
            message = "the open division needs a variant, a word for what this table changes."
            yield Problem(location=("series", index, "division"), message=message)
        for library in series.rl_libraries:
            if (series.name, library) not in closed:
                message = f"no closed table of series {series.name} has {library}, to hold the variant against; add it."
                yield Problem(location=("series", index, "rl_libraries"), message=message)


def _closed(series: Series) -> bool:
    return series.division == "closed"


def _contradictions(table: MatrixTable) -> list[Problem]:
    """Tables of one series that disagree on what it is, and points that two tables have."""
    problems: list[Problem] = []
    first: dict[str, Series] = {}
    seen: set[str] = set()
    for index, series in enumerate(table.series):
        other = first.setdefault(series.name, series)
        for key in ("title", "scaling", "task", "workload"):
            got, wanted = getattr(series, key), getattr(other, key)
            if got != wanted:
                message = f"got {got!r}, but series {series.name} has {wanted!r} above; repeat it or take another name."
                problems.append(Problem(location=("series", index, key), message=message))
        for point, library, stack, topology in _points(series):
            case_id = _case_id(point, library, stack, topology, "cuda")
            if case_id in seen:
                message = f"{case_id} is there twice; leave one out, or give its series another name."
                problems.append(Problem(location=("series", index, "topologies"), message=message))
            seen.add(case_id)
    return problems


def _points(series: Series, stack: Stack | None = None) -> Iterator[tuple[Series, RlLibrary, Stack, Topology]]:
    """Every point of a table, each with the table as it is for that number of environments."""
    stacks: tuple[Stack, ...] = series.stacks if stack is None else (stack,)
    for library in series.rl_libraries:
        for chosen in stacks:
            for topology in series.topologies:
                for num_envs in (series.num_envs, *series.num_envs_more):
                    yield series.model_copy(update={"num_envs": num_envs}), library, chosen, topology


def _ranks(topology: Topology) -> tuple[int, int]:
    """``2x8`` as nnodes and nproc_per_node."""
    nnodes, nproc_per_node = topology.split("x")
    return int(nnodes), int(nproc_per_node)


def _num_envs_global(series: Series, topology: Topology) -> int:
    nnodes, nproc_per_node = _ranks(topology)
    return series.num_envs if series.scaling == "strong" else series.num_envs * nnodes * nproc_per_node


def _case_id(series: Series, library: RlLibrary, stack: Stack, topology: Topology, device: Device) -> str:
    where = f"{stack}-cpu" if device == "cpu" else stack
    variant = "-fixed_updates" if series.minibatch_rule == "fixed_updates" else ""
    variant += f"-{series.variant}" if series.variant else ""
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
    agent = task.agents[library]
    nnodes, nproc_per_node = _ranks(topology)
    world_size = nnodes * nproc_per_node
    num_envs_global = _num_envs_global(series, topology)
    num_steps_per_env = series.num_steps_per_env or agent.num_steps_per_env
    minibatch = minibatch_per_rank(
        agent,
        rule=series.minibatch_rule,
        single_rank_batch=series.num_envs * num_steps_per_env,
        batch=num_envs_global // world_size * num_steps_per_env,
        ranks_sharing=world_size if series.scaling == "strong" else 1,
        minibatch_size=series.minibatch_size,
    )
    return Case(
        case_id=_case_id(series, library, stack, topology, device),
        series=series.name,
        scaling=series.scaling,
        task=task.task,
        rl_library=library,
        stack=stack,
        device=device,
        nnodes=nnodes,
        nproc_per_node=nproc_per_node,
        num_envs=num_envs_global // world_size,
        num_envs_global=num_envs_global,
        num_steps_per_env=num_steps_per_env,
        iterations=series.iterations,
        minibatch_rule=series.minibatch_rule,
        minibatch_size=minibatch.size,
        optimiser_steps=minibatch.count * agent.learning_epochs,
        seed=matrix.seed if seed is None else seed,
        assets=assets,
        presets=catalog.stacks[stack].presets_for(task),
        overrides=(*_agent_overrides(catalog, series, task, library, minibatch), *series.overrides),
        timeout_s=series.timeout_s or matrix.defaults.timeout_s,
        hang_timeout_s=series.hang_timeout_s or matrix.defaults.hang_timeout_s,
        workload=series.workload,
        division=series.division,
        cpu_threads=series.cpu_threads,
        pin_cpus=series.pin_cpus,
    )


def _agent_overrides(
    catalog: Catalog, series: Series, task: TaskEntry, library: RlLibrary, minibatch: Minibatch
) -> tuple[str, ...]:
    """Tokens for what differs from the agent's defaults: a case at the defaults runs exactly as upstream has it."""
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
