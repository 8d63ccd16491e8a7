"""Check the tables of a matrix file against the catalog and against each other. Pure."""

from collections.abc import Iterator
from typing import Final

from suite.errors import MatrixError
from suite.files.toml_file import Problem
from suite.matrix.cases import case_id_of, points, with_numbers_alone
from suite.matrix.catalog import Catalog, TaskEntry
from suite.matrix.own_worker import PINS, name_of, pinned_names
from suite.matrix.tables import MatrixTable, Series
from suite.schema.record import ALONE_SUFFIX, COLD_SUFFIX, WARM_UP_SUFFIX, RlLibrary, agent_library_of
from suite.statistics import twins

# Suffixes of case ids that labscale adds itself.
OPEN_KEYS: Final = ("variant", "cpu_threads", "pin_cpus", "deterministic", "trainings_per_gpu", "with_packages")
OWN_SUFFIXES: Final = (twins.SUFFIX, WARM_UP_SUFFIX, ALONE_SUFFIX, COLD_SUFFIX)


def problems_of(table: MatrixTable, catalog: Catalog) -> list[Problem]:
    """Return every problem with its place in the file. Tables are compared only once each is valid by itself."""
    alone = [
        problem
        for index, series in enumerate(table.series)
        for problem in _series_problems(series, catalog, ("series", index))
    ]
    return alone or [*_rounds_problems(table), *_division_problems(table), *_contradictions(table)]


def _series_problems(series: Series, catalog: Catalog, location: tuple[int | str, ...]) -> Iterator[Problem]:
    """Yield what the catalog lacks for a series, and overrides of keys that labscale sets."""
    try:
        task = catalog.resolve(series.task)
    except MatrixError as error:
        yield Problem(location=(*location, "task"), message=str(error))
        return
    needed = dict.fromkeys(agent_library_of(series.workload, library) for library in series.rl_libraries)
    if missing := [library for library in needed if library not in task.agents]:
        agents = ", ".join(task.agents) or "none of the RL libraries that labscale runs"
        message = f"got {', '.join(missing)}; {task.task} has agents for {agents}."
        yield Problem(location=(*location, "rl_libraries"), message=message)
    if missing_stacks := [stack for stack in series.stacks if stack not in catalog.stacks]:
        message = f"got {', '.join(missing_stacks)}; should be among {', '.join(catalog.stacks)}."
        yield Problem(location=(*location, "stacks"), message=message)
    is_one = (series.scaling, *series.topologies, series.workload) == ("weak", "1x1", "train")
    if series.trainings_per_gpu > 1 and not is_one:
        message = f"got {series.trainings_per_gpu}; needs weak scaling, the topology 1x1 and the workload train."
        yield Problem(location=(*location, "trainings_per_gpu"), message=message)
    reserved = {key for library in needed for key in _reserved_keys(catalog, task, library)}
    for override in series.overrides:
        if override.split("=")[0] in reserved:
            message = f"got {override!r}; labscale sets it from the case; use the keys of the matrix."
            yield Problem(location=(*location, "overrides"), message=message)
    for place, packages in ((("with_packages",), series.with_packages), *_versions(series)):
        names = [name_of(package) for package in packages]
        if unknown := [name for name in names if name not in pinned_names()]:
            message = (
                f"got {', '.join(unknown)}, which no worker has; only versions of packages in {PINS}/*.txt differ."
            )
            yield Problem(location=(*location, *place), message=message)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            message = f"got {', '.join(twice)} twice; a package has one version."
            yield Problem(location=(*location, *place), message=message)
    yield from _cold_start_problems(series, location)


def _versions(series: Series) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield where the packages of each version are, and the packages."""
    yield from ((("versions", variant), packages) for variant, packages in series.versions.items())


def _cold_start_problems(series: Series, location: tuple[int | str, ...]) -> Iterator[Problem]:
    """Yield what cold starts are not measured for."""
    if series.kernel_cache == "kept":
        return
    if several := [topology for topology in series.topologies if not topology.startswith("1x")]:
        message = (
            f"got {', '.join(several)} with an empty kernel_cache, which nodes may share or not; take one node, 1x…."
        )
        yield Problem(location=(*location, "topologies"), message=message)
    if series.workload != "train":
        message = f"got {series.workload!r} with an empty kernel_cache; cold starts are measured of training only."
        yield Problem(location=(*location, "workload"), message=message)


def _reserved_keys(catalog: Catalog, task: TaskEntry, library: RlLibrary) -> set[str]:
    """Hydra keys that labscale sets from the fields of a case."""
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
    """Yield tuned tables without division or variant, and those without an untuned table to compare with."""
    closed = {(series.name, library) for series in table.series for library in series.rl_libraries if _closed(series)}
    for index, series in enumerate(table.series):
        named = {("versions", variant): variant for variant in series.versions} | {("variant",): series.variant}
        for place, variant in named.items():
            if f"-{variant}".endswith(OWN_SUFFIXES):
                message = f"got {variant!r}, the end of case ids that labscale adds itself; take another word."
                yield Problem(location=("series", index, *place), message=message)
        tuned = [key for key in OPEN_KEYS if getattr(series, key) != Series.model_fields[key].default]
        if _closed(series):
            for key in tuned:
                message = (
                    f"got {getattr(series, key)!r} in the closed division, which runs as upstream ships it; is it open?"
                )
                yield Problem(location=("series", index, key), message=message)
            continue
        if series.variant is None:
            message = "the open division needs a variant, a word for what the table changes."
            yield Problem(location=("series", index, "division"), message=message)
        if series.versions:
            message = f"got {', '.join(series.versions)} in the open division; only a closed table is repeated."
            yield Problem(location=("series", index, "versions"), message=message)
        for library in series.rl_libraries:
            if (series.name, library) not in closed:
                message = f"no closed table of series {series.name} has {library} to compare the variant with; add it."
                yield Problem(location=("series", index, "rl_libraries"), message=message)


def _closed(series: Series) -> bool:
    return series.division == "closed"


def _contradictions(table: MatrixTable) -> list[Problem]:
    """Return tables of one series that contradict each other, and points that occur twice."""
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
        for point, library, stack, topology in points(with_numbers_alone(series)):
            case_id = case_id_of(point, library, stack, topology, "cuda")
            if case_id in seen:
                message = f"{case_id} occurs twice; leave one out, or give its series another name."
                problems.append(Problem(location=("series", index, "topologies"), message=message))
            seen.add(case_id)
    return problems
