"""Read a matrix file, which defines what a campaign measures, and check its tables against the catalog."""

import os
import reprlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Final

from suite.errors import MatrixError
from suite.files.toml_file import Fault, did_you_mean, read_toml
from suite.matrix.cases import case_id_of, points
from suite.matrix.catalog import Catalog, TaskEntry
from suite.matrix.own_worker import PINS, name_of, pinned_names
from suite.matrix.tables import Matrix, MatrixTable, Series
from suite.schema.record import ALONE_SUFFIX, COLD_SUFFIX, LEARNING_SUFFIX, WARM_UP_SUFFIX, RlLibrary, agent_library_of
from suite.statistics import twins

MATRICES_PATH = Path(__file__).parents[2] / "tasks" / "matrices"
OPEN_KEYS: Final = ("variant", "cpu_threads", "pin_cpus", "deterministic", "trainings_per_gpu", "with_packages")
# Suffixes of case ids that labscale adds itself.
OWN_SUFFIXES: Final = (twins.SUFFIX, WARM_UP_SUFFIX, ALONE_SUFFIX, LEARNING_SUFFIX, COLD_SUFFIX)


def load_matrix(name_or_path: str | Path, catalog: Catalog) -> Matrix:
    """Read ``tasks/matrices/<name>.toml``, or the file at a path.

    Raises MatrixError with every problem of the file and its line.
    """
    file = read_toml(_matrix_path(name_or_path))
    table = file.validate(MatrixTable)
    if faults := _faults(table, catalog):
        raise file.error(faults)
    return Matrix(name=file.path.stem, **dict(table))


def read_table(name_or_path: str | Path) -> MatrixTable:
    """Read the tables without checking them against the catalog. Raises MatrixError if their form is wrong."""
    return read_toml(_matrix_path(name_or_path)).validate(MatrixTable)


def matrix_names() -> list[str]:
    """Names of the matrices that come with labscale, sorted."""
    return sorted(file.stem for file in MATRICES_PATH.glob("*.toml"))


def _matrix_path(name_or_path: str | Path) -> Path:
    path, names = Path(name_or_path), matrix_names()
    if str(name_or_path) in names:
        return MATRICES_PATH / f"{name_or_path}.toml"
    if path.suffix != ".toml" and not os.path.isfile(path):  # noqa: PTH113 - False for any name, even one that is too long
        hint = did_you_mean(str(name_or_path), names)
        raise MatrixError(
            f"unknown matrix {reprlib.repr(str(name_or_path))}; there are {', '.join(names)}, or give the path of a"
            f" TOML file.{hint}"
        )
    return path


def _faults(table: MatrixTable, catalog: Catalog) -> list[Fault]:
    """Return every fault with its place in the file. Tables are compared only once each is valid by itself."""
    alone: list[Fault] = [
        (("series", index, *place), message)
        for index, series in enumerate(table.series)
        for place, message in (*_catalog_faults(series, catalog), *_series_faults(series))
    ]
    return alone or [*_rounds_faults(table), *_seed_faults(table), *_learning_faults(table), *_contradictions(table)]


def _catalog_faults(series: Series, catalog: Catalog) -> Iterator[Fault]:
    """Yield what the catalog and the pins lack for a series, and overrides of keys that labscale sets."""
    try:
        task = catalog.resolve(series.task)
    except MatrixError as error:
        yield ("task",), str(error)
        return
    needed = dict.fromkeys(agent_library_of(series.workload, library) for library in series.rl_libraries)
    if missing := [library for library in needed if library not in task.agents]:
        agents = ", ".join(task.agents) or "none of the RL libraries that labscale runs"
        yield ("rl_libraries",), f"got {', '.join(missing)}; {task.task} has agents for {agents}."
    reserved = {key for library in needed for key in _reserved_keys(catalog, task, library)}
    for override in series.overrides:
        if override.split("=")[0] in reserved:
            yield ("overrides",), f"got {override!r}; labscale sets it itself; use the keys of the matrix."
    versions = [(("versions", variant), packages) for variant, packages in series.versions.items()]
    for place, packages in ((("with_packages",), series.with_packages), *versions):
        names = [name_of(package) for package in packages]
        if others := [name for name in names if name not in pinned_names()]:
            allowed = f"only versions of packages in {PINS}/*.txt differ"
            yield place, f"got {', '.join(others)}, which no worker has; {allowed}."
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield place, f"got {', '.join(twice)} twice; a package has one version."


def _reserved_keys(catalog: Catalog, task: TaskEntry, library: RlLibrary) -> set[str]:
    """Hydra keys that labscale sets from the fields of a case."""
    entry = catalog.libraries[library]
    extra = task.agents[library].minibatch_overrides if library in task.agents else ()
    tokens = (entry.num_steps_override, *entry.minibatch_overrides, *extra)
    return {token.split("=")[0] for token in tokens} | {*entry.reserved_keys, "env.scene.num_envs", "env.seed"}


def _series_faults(series: Series) -> Iterator[Fault]:
    """Yield fields of a table that do not go together."""
    is_open, is_cold = series.division == "open", series.kernel_cache == "empty"
    is_one = (series.scaling, *series.topologies, series.workload) == ("weak", "1x1", "train")
    nodes = ", ".join(topology for topology in series.topologies if not topology.startswith("1x"))
    for is_wrong, key, message in (
        (
            series.trainings_per_gpu > 1 and not is_one,
            "trainings_per_gpu",
            f"got {series.trainings_per_gpu}; needs weak scaling, the topology 1x1 and the workload train.",
        ),
        (
            is_cold and nodes,
            "topologies",
            f"got {nodes} with an empty kernel_cache, which nodes may share or not; take one node, 1x….",
        ),
        (
            is_cold and series.workload != "train",
            "workload",
            f"got {series.workload!r} with an empty kernel_cache; cold starts are measured of training only.",
        ),
        (
            is_open and series.variant is None,
            "division",
            "the open division needs a variant, a word for what the table changes.",
        ),
        (
            is_open and series.versions,
            "versions",
            f"got {', '.join(series.versions)} in the open division; only a closed table is repeated.",
        ),
        *(
            (
                not is_open and getattr(series, key) != Series.model_fields[key].default,
                key,
                f"got {getattr(series, key)!r} in the closed division, which runs as upstream ships it; is it open?",
            )
            for key in OPEN_KEYS
        ),
    ):
        if is_wrong:
            yield (key,), message
    for place, variant in ((("variant",), series.variant), *((("versions", name), name) for name in series.versions)):
        if f"-{variant}".endswith(OWN_SUFFIXES):
            yield place, f"got {variant!r}, the end of configuration ids that labscale adds itself; take another word."


def _rounds_faults(table: MatrixTable) -> Iterator[Fault]:
    if table.max_rounds is not None and table.precision is None:
        needs = "without a precision to stop at before; add one, or leave it out"
        yield ("max_rounds",), f"got {table.max_rounds} {needs}."
    elif table.max_rounds is not None and table.max_rounds < table.rounds:
        yield ("max_rounds",), f"got {table.max_rounds}; should be at least rounds, which is {table.rounds}."


def _seed_faults(table: MatrixTable) -> Iterator[Fault]:
    """Yield topologies whose ranks have seeds that other ranks have in the next round."""
    apart = table.seed_per_round
    if isinstance(apart, bool):  # true: as far as a case has ranks
        return
    for index, series in enumerate(table.series):
        for topology in series.topologies:
            ranks = prod(int(number) for number in topology.split("x") if number != "all")
            if ranks > apart:
                allowed = f"seed_per_round {apart} allows up to {apart} processes, or two runs would share seeds"
                why = f"got {topology}, {ranks} processes; {allowed}. Take fewer, a larger seed_per_round, or true."
                yield ("series", index, "topologies"), why


def _learning_faults(table: MatrixTable) -> Iterator[Fault]:
    """Yield what does not go with ``only_learning``, where no time means anything."""
    if not table.only_learning:
        return
    for key in ("precision", "a_a", "turns_check", "warm_up"):
        if got := getattr(table, key):
            yield (key,), f"got {got!r}, which is for times, and with only_learning none means anything; leave it out."
    for index, series in enumerate(table.series):
        for key, plain in (("workload", "train"), ("trainings_per_gpu", 1), ("kernel_cache", "kept")):
            if (got := getattr(series, key)) != plain:
                yield ("series", index, key), f"got {got!r}; with only_learning it is {plain!r}."


def _contradictions(table: MatrixTable) -> Iterator[Fault]:
    """Yield where tables of one series differ, points that occur twice, and variants with nothing to compare with."""
    closed = {(s.name, library) for s in table.series if s.division == "closed" for library in s.rl_libraries}
    first: dict[str, Series] = {}
    case_ids: set[str] = set()
    for index, series in enumerate(table.series):
        other = first.setdefault(series.name, series)
        for key in ("title", "scaling", "task", "workload"):
            got, wanted = getattr(series, key), getattr(other, key)
            if got != wanted:
                why = f"series {series.name} has {wanted!r} above; repeat it or take another name"
                yield ("series", index, key), f"got {got!r}, but {why}."
        for library in series.rl_libraries:
            if (series.name, library) not in closed:
                why = f"no closed table of series {series.name} has {library} to compare the variant with; add it."
                yield ("series", index, "rl_libraries"), why
        for point, library, stack, topology in points(series):
            case_id = case_id_of(point, library, stack, topology, "cuda")
            if case_id in case_ids:
                why = "occurs twice; leave one out, or give its series another name"
                yield ("series", index, "topologies"), f"{case_id} {why}."
            case_ids.add(case_id)
