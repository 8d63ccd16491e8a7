"""The tables of a matrix file, as values. ``suite.matrix.file`` checks them together."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints

from suite.files.toml_file import NonEmptyTuple, TomlTable, Tuple
from suite.matrix.catalog import Count, NumEnvs, NumSteps, Seconds
from suite.matrix.own_worker import exact_package, over
from suite.schema.record import Division, KernelCache, MinibatchRule, RlLibrary, Scaling, Stack, Workload

MOST_ROUNDS: Final = 1000
MOST_TRAININGS: Final = 64
LEAST_STEP: Final = 1000  # between the seeds of rounds
LARGEST_STEP: Final = 100_000  # times the most rounds it stays below numpy's limit
LARGEST_SEED: Final = 4_000_000_000  # numpy's limit is 2**32 - 1; rank r adds r, and rl_games adds it again
# RL libraries evaluate some strings of an agent's settings as Python, and import others by name. A matrix is data, so a
# string is one of these words, whatever its field: none of them runs or names any code when it is evaluated.
WORDS: Final = frozenset(
    {
        "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs",  # torch.compile
        "elu", "selu", "relu", "crelu", "lrelu", "leaky_relu", "tanh", "sigmoid", "softplus", "softsign", "gelu",
        "swish", "mish", "identity", "lstm", "gru",  # networks
        "adam", "adamw", "sgd", "rmsprop", "mse", "huber", "scalar", "log",  # optimisers, losses, distributions
        "adaptive", "fixed", "linear", "constant", "auto", "KLAdaptiveLR", "RunningStandardScaler",
        "newton", "cg", "euler", "implicitfast", "pyramidal", "elliptic", "nxn", "sap", "explicit",  # solvers
    }
)  # fmt: skip
LONGEST_OVERRIDE: Final = 200  # characters
_NUMBER: Final = r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?"
_KEY: Final = re.compile(r"(env|agent)(\.[A-Za-z][A-Za-z0-9_]*){1,20}")  # no private names, such as __class__
_VALUE: Final = re.compile(rf"(?i:true|false|null|none)|{_NUMBER}|\[ *{_NUMBER}( *, *{_NUMBER})* *\]")


def plain_override(text: str) -> str:
    """Return the override of a field by a value that no library evaluates, imports or opens.

    Raises:
        ValueError: it is not a plain field with a plain value.
    """
    key, _, value = text.partition("=")
    if len(text) > LONGEST_OVERRIDE or not _KEY.fullmatch(key):
        raise ValueError(
            "should be env.FIELD=VALUE or agent.FIELD=VALUE, where FIELD is names with dots between them, with "
            f"{LONGEST_OVERRIDE} characters at most"
        )
    if value not in WORDS and not _VALUE.fullmatch(value):
        raise ValueError(
            "should have a number, true, false, null or a list of numbers as its value, or one of the words "
            f"{', '.join(sorted(WORDS))}; libraries run other texts as code, so set them in the code of your task"
        )
    return text


type Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]  # also a folder name
# nnodes x nproc_per_node; "all" becomes the number of GPUs of a node, see ``suite.matrix.selection.on_nodes_of``.
type Topology = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}x([1-9][0-9]{0,4}|all)$")]
type Rounds = Annotated[int, Field(gt=0, le=MOST_ROUNDS)]
type Fraction = Annotated[float, Field(gt=0, lt=1)]


def seeds_apart(value: object) -> bool | int:
    """Return how far the seeds of rounds are apart, see ``Case.seed_per_round``. Raises ValueError for others."""
    if isinstance(value, bool) or (isinstance(value, int) and LEAST_STEP <= value <= LARGEST_STEP):
        return value
    raise ValueError(f"should be true, false or a number from {LEAST_STEP} to {LARGEST_STEP}")


type Package = Annotated[str, AfterValidator(exact_package)]
type Override = Annotated[str, AfterValidator(plain_override)]


class Series(TomlTable):
    """A ``[[series]]`` table. Tables of the same name add points to one series."""

    name: Name
    title: str
    scaling: Scaling
    task: str  # id of Isaac Lab 3.0 or an alias
    rl_libraries: NonEmptyTuple[RlLibrary]
    num_envs: NumEnvs  # of all ranks for strong scaling, per rank for weak
    num_envs_more: Tuple[NumEnvs] = ()  # a sweep: repeats the table for each number
    topologies: NonEmptyTuple[Topology]
    iterations: Annotated[int, Field(ge=2, le=10**7)]  # the first never counts, so one alone has no figure
    minibatch_rule: MinibatchRule = "fixed_minibatch"
    minibatch_size: Count | None = None  # samples per rank; with fixed_updates of a single rank
    num_steps_per_env: NumSteps | None = None  # None: the agent's
    timeout_s: Seconds | None = None
    hang_timeout_s: Seconds | None = None
    overrides: Tuple[Override] = ()
    stacks: NonEmptyTuple[Stack] = ("kitless",)
    division: Division = "closed"  # open: tuned, each table under a variant of its own
    variant: Name | None = None  # the suffix of the table's case ids
    cpu_threads: Count | None = None
    pin_cpus: bool = False
    deterministic: bool = False  # runs of one seed are to be equal bit for bit
    trainings_per_gpu: Annotated[int, Field(ge=1, le=MOST_TRAININGS)] = 1  # at the same time, each with num_envs
    with_packages: Tuple[Package] = ()  # other versions than the worker's pins have, in an environment of its own
    # The table once more for each key, in the open division under this variant, with these packages.
    versions: Mapping[Name, NonEmptyTuple[Package]] = Field(default_factory=dict)
    kernel_cache: KernelCache = "kept"  # empty: cold starts; all rounds of its series then run alone, not in turns
    workload: Workload = "train"  # else a pipeline, or a single-part test, which uses rsl_rl's agent

    def with_each_version(self) -> Iterator[Self]:
        """Yield the table itself, then once more for each of its ``versions``."""
        own = self.model_copy(update={"versions": {}})
        yield own
        for variant, packages in self.versions.items():
            changes = {
                "division": "open",
                "variant": "-".join(filter(None, (variant, self.variant))),
                "with_packages": over(self.with_packages, packages),
            }
            yield own.model_copy(update=changes)


class Defaults(TomlTable):
    """Values for every series that does not set its own."""

    timeout_s: Seconds = 1800.0
    hang_timeout_s: Seconds = 300.0


class MatrixTable(TomlTable):
    """The tables of the file."""

    description: str
    rounds: Rounds  # fresh processes per case; with a precision the smallest number
    precision: Fraction | None = None  # relative half-width to reach, see suite.statistics.stopping_rule
    max_rounds: Rounds | None = None  # per case, with a precision
    a_a: bool = False  # run the baseline of every series twice, see suite.statistics.twins
    turns_check: bool = False  # run every case alone too, see suite.statistics.twins
    warm_up: bool = False  # compile each task's kernels in a run that does not count, see suite.campaign.runs.warm_up
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)]
    only_learning: bool = False  # ranks and runs share one GPU, see Case.only_learning
    seed_per_round: Annotated[bool | int, PlainValidator(seeds_apart)] = False  # see Case.seed_per_round
    defaults: Defaults = Defaults()
    series: NonEmptyTuple[Series]


class Matrix(MatrixTable):
    name: str  # the file name without suffix
