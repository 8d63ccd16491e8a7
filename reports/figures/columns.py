"""Every column of figures, in one list: its title, unit, meaning and rounding, and how runs become its value.

``declarations`` takes from it what every configuration has. A page names a column, and gets its heading and its help;
wherever a figure is shown, it has the rounding of its column. *Explore* offers all that a configuration has, in this
order. A new measure is a line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from reports.data.columns import RUN_COLUMNS
from reports.data.samples import PARTS

type Rounding = Literal["count", "digits", "ratio", "percent", "signed", "hundredths"]

_RUNS: Final = {column.name: column for column in RUN_COLUMNS}


@dataclass(frozen=True)
class Column:
    """Figures of one kind."""

    name: str  # the ids of its figures end with it; what may follow it varies a rule, such as ``share_kept_50``
    title: str
    rounding: Rounding
    kind: str = ""  # how the runs of every configuration become one value; empty: it is declared otherwise
    of: str = ""  # the column of runs, if its name is another
    meaning: str = ""  # if the column of runs has another
    is_main: bool = False  # shown by Explore without scripts

    @property
    def column(self) -> str:
        """A column of runs, or two of which one is a part of the other: ``slowed_core_looks/core_looks``."""
        return self.of or self.name

    @property
    def heading(self) -> str:
        """Its title and unit."""
        unit = _RUNS[self.column].unit if self.column in _RUNS else ""
        return f"{self.title}, {unit}" if unit else self.title

    @property
    def help(self) -> str:
        """What it means; empty if the title says all."""
        return self.meaning or (_RUNS[self.column].meaning if self.column in _RUNS else "")


_ALL: Final = (
    Column("frames_per_s", "Speed", "count", "mean", is_main=True),
    Column("over_gpus", "Times the speed of the fewest GPUs", "ratio", is_main=True),
    Column("share_kept", "Share of ideal", "percent", meaning="the speed-up over the ratio of GPUs", is_main=True),
    Column("over_nodes", "Times the speed of one node", "ratio"),
    Column("over_environments_per_gpu", "Times the speed of the fewest environments", "ratio"),
    Column("over_trainings_per_gpu", "Times the speed of one training on a GPU", "ratio"),
    Column("over_is_tuned", "Times the speed as shipped, tuned", "ratio"),
    Column("over_library", "Times the speed of rl_games", "ratio"),
    Column("over_physics", "Times the speed of Newton", "ratio"),
    Column("over_is_deterministic", "Times the speed as shipped, deterministic", "ratio"),
    Column("over_packages", "Times the speed of the pinned packages", "ratio"),
    Column("over_workload", "Times the speed of one process", "ratio"),
    Column("over_gpu_model", "Times the speed at equal core speed", "ratio"),
    Column("at_equal_core_speed", "Times the speed at equal core speed", "ratio"),
    Column("start_over_packages", "Times as fast a start as with the pinned packages", "ratio"),
    Column("loss_seen", "A loss shows from", "percent", meaning="a smaller one can hide in the interval"),
    Column("start_loss_seen", "A loss of starts shows from", "percent"),
    Column("sooner", "Times as soon to the reward", "ratio"),
    Column("time_to_reward_s", "Time to the reward", "digits", of="iteration_s", meaning="without start-up"),
    Column("frames_to_reward", "Frames to the reward", "count"),
    Column("reached", "Runs that had the reward", "count"),
    Column("differs_on_one_gpu", "Rewards on one GPU from those on several", "percent", meaning="of the rise, at most"),
    Column("differs_again", "Rewards of one run from another", "percent", meaning="of the rise, at most, of one seed"),
    Column("seeds", "Seeds that say how it learns", "count", meaning="which its base has too"),
    Column("learned_reward", "Reward at the end", "digits", meaning="by runs that say how it learns"),
    Column("learned_success", "Success at the end", "percent"),
    Column("reward_mean_to_reach", "Reward to reach", "digits", meaning="after nine tenths of its rise"),
    Column("iteration_s", "Time of an iteration", "digits", "mean"),
    Column("iteration_s_in_turns", "Time in turns over time alone", "ratio"),
    Column("step_frames_per_s", "Speed of steps alone", "count", "mean"),
    Column("rollout_frames_per_s", "Speed of rollouts alone", "count", "mean"),
    *(
        Column(f"{name}_share", f"{part.capitalize()}, share of an iteration", "percent", "average")
        for name, part in PARTS.items()
    ),
    Column("process_skew", "Skew of processes", "percent", "median"),
    Column("gpu_utilisation_percent", "Time in which a kernel ran", "digits", "median", is_main=True),
    Column("gpu_memory_gb", "GPU memory in use", "digits", "median", is_main=True),
    Column("peak_memory_gb", "GPU memory of torch", "digits", "median"),
    Column("power_w", "Power of all GPUs", "digits", "median"),
    Column("joules_per_million_frames", "Energy per million frames", "digits", "median", is_main=True),
    Column("warm_start_s", "Warm start", "digits", of="start_s", is_main=True),
    Column("cold_start_s", "Cold start", "digits", of="start_s"),
    Column("last_reward", "Reward at the end", "digits", "median", is_main=True),
    Column("library_difference", "Our clock against the library's", "hundredths", "median"),
    Column("isaaclab_difference", "Our clock against Isaac Lab's benchmark", "signed"),
    Column("core_probe_us", "Fixed work on the CPU core", "digits", "median"),
    Column("core_slope", "Core slope", "ratio"),
    Column("machines_slope", "Core slope", "ratio", meaning="one: the time goes with that of work on the CPU core"),
    Column("slowed_core_looks", "Cores slowed", "percent", "share", of="slowed_core_looks/core_looks"),
    Column("throttled_share", "Time throttled", "percent", "median"),
    Column("stolen_share", "CPU time stolen by a hypervisor", "percent", "median"),
    Column("others_share", "CPU time of other processes", "percent", "median"),
    Column("sampler_core_share", "CPU core that the sampler uses", "percent", "median"),
    Column("seed", "Seeds", "count", "count"),
    Column("results", "Different results", "count", meaning="of the runs of one seed"),
    Column("policy_call_s", "Call of LeRobot's policy", "digits", "mean"),
    Column("written_s", "Writing LeRobot's data set", "digits", "mean"),
    Column("bytes_per_frame", "LeRobot's data set per frame", "digits", "mean"),
    # of what others published, and of how often intervals are right
    Column("frames_per_s_of", "Times the speed that others published", "ratio"),
    Column("frames_per_s_kept", "Share of ideal", "percent"),
    Column("trainings_per_hour_kept", "Share of ideal", "percent"),
    Column("ratios", "Ratios", "count", meaning="whose truth is known"),
    Column("contain", "Contain the truth", "percent"),
    Column("half_width", "Half width", "percent", meaning="of the interval"),
    Column("unpaired_contain", "Unpaired: contain it", "percent"),
    Column("unpaired_half_width", "Half width of those", "percent"),
)
COLUMNS: Final[Mapping[str, Column]] = {column.name: column for column in _ALL}


@cache
def column_of(figure_id: str) -> Column:
    """Return the column of a figure. Raises ValueError for one that no page shows."""
    end = figure_id.rpartition("/")[2]
    return COLUMNS[max((name for name in COLUMNS if end.startswith(name)), key=len)]
