"""What a matrix file may hold: its tables, as values. What they mean together is in ``suite.matrix.rules``."""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from suite.files.toml_file import NonEmptyTuple, TomlTable, Tuple
from suite.matrix.catalog import Count, NumEnvs, NumSteps, Seconds
from suite.schema.record import Division, MinibatchRule, RlLibrary, Scaling, Stack, Workload

MOST_ROUNDS: Final = 1000
LARGEST_SEED: Final = 4_000_000_000  # numpy takes none above 2**32 - 1; rank r adds r, and rl_games adds it again

type Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]  # also a folder's
# nnodes x nproc_per_node; "1xall" becomes the number that a node has, see ``suite.matrix.cases.on_nodes_of``.
type Topology = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}x([1-9][0-9]{0,4}|all)$")]
type Rounds = Annotated[int, Field(gt=0, le=MOST_ROUNDS)]
type Fraction = Annotated[float, Field(gt=0, lt=1)]
type Override = Annotated[str, StringConstraints(pattern=r"^(env|agent)\.[^=]+=.+$")]


class Series(TomlTable):
    """A ``[[series]]`` table. Tables of the same name add points to one series."""

    name: Name
    title: str
    scaling: Scaling
    task: str  # id of Isaac Lab 3.0 or an alias
    rl_libraries: NonEmptyTuple[RlLibrary]
    num_envs: NumEnvs  # of all ranks for strong scaling, per rank for weak
    num_envs_more: Tuple[NumEnvs] = ()  # a sweep: the table again for each of these
    topologies: NonEmptyTuple[Topology]
    iterations: Annotated[int, Field(ge=2, le=10**7)]  # the first is never steady, so of one there would be no figure
    minibatch_rule: MinibatchRule = "fixed_minibatch"
    minibatch_size: Count | None = None  # samples per rank; under fixed_updates those of a single rank
    num_steps_per_env: NumSteps | None = None  # None takes the agent's
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
    rounds: Rounds  # fresh processes per case; with a precision the fewest
    precision: Fraction | None = (
        None  # go on until the median is known to this half-width, see suite.statistics.stopping_rule
    )
    max_rounds: Rounds | None = None  # of a case, with a precision
    a_a: bool = False  # run the baseline of every series twice, see suite.statistics.aa_noise
    warm_up: bool = False  # compile each task's kernels in a run that does not count, see suite.campaign.runs.warm_up
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)]
    defaults: Defaults = Defaults()
    series: NonEmptyTuple[Series]


class Matrix(MatrixTable):
    name: str  # of the file, without suffix
