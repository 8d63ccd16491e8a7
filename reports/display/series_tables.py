"""Tables and words about the cases of a series. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.learning_curves import CurvePoint
from reports.analysis.rows import CaseRow, Failure
from reports.analysis.series_kind import SeriesKind
from reports.analysis.time_split import PARTS, Inside, Kind, Part, parts_s
from reports.display.charts.points import MAX_RANKS, case_label, some_ranks
from reports.display.figure import TableFigure, table_of
from reports.display.html import (
    MISSING,
    Html,
    count,
    html_table,
    interval_of,
    paragraph,
    percent,
    percent_interval,
    ratio,
    rounds_text,
    seconds,
)
from suite.files.wording import counted
from suite.schema.record import Case, Stack

WITHOUT_ISAAC_SIM: Final = " (no Isaac Sim)"
STACK_NAMES: Final[Mapping[Stack, str]] = {
    "kitless": f"Newton{WITHOUT_ISAAC_SIM}",
    "ovphysx": f"PhysX{WITHOUT_ISAAC_SIM}",
    "isaacsim": "PhysX and RTX in Isaac Sim",
}


def ranks_text(case: Case | CaseRow) -> str:
    """``1 GPU``, ``4 GPUs``; on CPUs ``2 ranks``."""
    return counted(case.world_size, "GPU" if case.device == "cuda" else "rank")


def outcomes(row: CaseRow) -> str:
    """``3 completed``, ``2 completed, 1 hung``."""
    said = [f"{rounds} {name}" for name, rounds in sorted(row.outcome_counts.items())]
    return ", ".join(said) or "none"


def all_cases(rows: Sequence[CaseRow], *, label: str) -> Html:
    """Every case, whatever became of it. On one number of ranks nothing is sped up."""
    has_scaling = len({row.world_size for row in rows}) > 1
    has_topologies = len({row.topology for row in rows}) > 1
    scaling = ["Speed-up", "Efficiency"] if has_scaling else []
    crossed = ["Interconnect"] if has_topologies else []
    return html_table(
        ["Case", "Ranks", "Iteration time in s", "Total FPS", *scaling, *crossed, "Rounds"],
        (
            [
                row.case_id,
                f"{row.world_size} ({row.topology})",
                interval_of(row.iteration_time_s, row.iteration_time_interval_s, seconds),
                interval_of(row.total_fps, row.total_fps_interval, count),
                *(_scaling(row) if has_scaling else []),
                *([row.interconnect or MISSING] if has_topologies else []),
                outcomes(row),
            ]
            for row in rows
        ),
        label=label,
        text_headings=("Interconnect",),
    )


def _scaling(row: CaseRow) -> list[str]:
    return [
        interval_of(row.speedup, row.speedup_interval, ratio),
        interval_of(row.scaling_efficiency, row.scaling_efficiency_interval, percent),
    ]


def speedups(rows: Sequence[CaseRow]) -> Html:
    return html_table(
        ["Case", "Ranks", "Baseline ranks", "Speed-up", "Ideal", "Efficiency", "Interval", "Rounds"],
        (
            [
                row.case_id,
                str(row.world_size),
                count(row.baseline_world_size),
                ratio(row.speedup),
                ratio(row.ideal_speedup),
                percent(row.scaling_efficiency),
                percent_interval(row.scaling_efficiency_interval),
                rounds_text([row.rounds_completed]),
            ]
            for row in rows
        ),
        label="Speed-up and efficiency",
        text_headings=("Rounds",),
    )


def throughput(rows: Sequence[CaseRow], found: Mapping[str, Inside]) -> Html:
    return html_table(
        [
            "Case",
            "Ranks",
            "Step FPS",
            "Step and inference FPS",
            "Total FPS",
            "Iteration time in s",
            "Interval in s",
            "Rounds",
        ],
        (
            [
                row.case_id,
                str(row.world_size),
                *(_fps(found[row.case_id], kind) for kind in ("step", "step and inference", "total")),
                seconds(row.iteration_time_s),
                _interval(row.iteration_time_interval_s),
                rounds_text([row.rounds_completed]),
            ]
            for row in rows
        ),
        label="Throughput and iteration time",
        text_headings=("Rounds",),
    )


def _fps(found: Inside, kind: Kind) -> str:
    return count(found.fps[kind].median) if kind in found.fps else MISSING


def _interval(interval: tuple[float, float] | None) -> str:
    return MISSING if interval is None else f"{seconds(interval[0])} to {seconds(interval[1])}"


def time_split(rows: Sequence[CaseRow], found: Mapping[str, Inside]) -> Html:
    """One column for every part that any of the cases has."""
    parts = [part for part in PARTS.values() if any(part in found[row.case_id].shares for row in rows)]
    return html_table(
        ["Case", "Ranks", "Iteration in s", *(f"{part.capitalize()} in s" for part in parts)],
        (
            [
                row.case_id,
                str(row.world_size),
                seconds(row.iteration_time_s),
                *_parts(row, found[row.case_id], parts),
            ]
            for row in rows
        ),
        label="Parts of the iteration time and their shares",
    )


def _parts(row: CaseRow, found: Inside, parts: Sequence[Part]) -> list[str]:
    """``0.0123 (41.2 %)`` of each part."""
    times_s = parts_s(row.iteration_time_s, found.shares)
    return [
        f"{seconds(times_s[part])} ({percent(found.shares[part])})" if part in times_s else MISSING for part in parts
    ]


def rank_skew(series: Campaign) -> TableFigure | Html:
    """Iteration time of each rank against that of the median rank."""
    shown = [row for row in series.rows if series.inside[row.case_id].rank_ratios]
    if not shown:
        return paragraph("No case with more than one rank completed, so no rank can be late.")
    left_out = (
        f" Of more than {MAX_RANKS} ranks the fastest, the slowest and those at the quartiles are shown."
        if any(row.world_size > MAX_RANKS for row in shown)
        else ""
    )
    words = "; ".join(f"{case_label(row, shown)}: {behind(row.rank_skew)}" for row in shown)
    return table_of(
        series,
        "rank-skew",
        caption="Each line is a rank, median over rounds. Ranks wait for each other in every all-reduce, so their"
        f" iterations end close together even where their work does not.{left_out} Slowest over median, by case:"
        f" {words}.",
        data=rank_ratios(series.rows, series.inside),
    )


def rank_ratios(rows: Sequence[CaseRow], found: Mapping[str, Inside]) -> Html:
    """How far each rank is behind the median rank: in its median round, and in the least and the most of its rounds."""
    return html_table(
        ["Case", "Ranks", "Rank", "Behind the median rank by", "Least round", "Most"],
        (
            [
                row.case_id,
                str(row.world_size),
                str(rank),
                *(behind(of - 1) for of in (ratio.median, ratio.low, ratio.high)),
            ]
            for row in rows
            for rank, ratio in some_ranks(found[row.case_id].rank_ratios)
        ),
        label="Iteration time by rank",
    )


def behind(share: float | None) -> str:
    """``+0.02 %``: by how much of the median rank's time."""
    return MISSING if share is None else f"{100 * share:+z.2f} %"


def final_rewards(last: Sequence[CurvePoint]) -> Html:
    return html_table(
        ["Case", "Last iteration", "Mean return"],
        ([point.case_id, str(point.iteration), f"{point.reward:.3g}"] for point in last),
        label="Mean return at the end",
    )


def failures(failed: Sequence[Failure], *, label: str) -> Html:
    """Every round that did not complete, with its reason; a sentence when there is none."""
    if not failed:
        return paragraph("Every round of every case completed.")
    return html_table(
        ["Case", "Round", "Outcome", "Reason"],
        (
            [failure.case_id, str(failure.round), failure.outcome, failure.reason or "no reason was recorded"]
            for failure in failed
        ),
        label=label,
        num_text_columns=4,
    )


def series_title(case: Case, kind: SeriesKind = "scaling") -> str:
    """``Cartpole-Direct, 8,192 environments in all``: what a series is about, from one of its cases."""
    return f"{case.task.removeprefix('Isaac-')}, {series_subject(case, kind)}"


def series_subject(case: Case, kind: SeriesKind = "scaling") -> str:
    """``8,192 environments in all``: its title where it is clear which task is meant."""
    if case.workload == "all_reduce":
        return "all-reduce of the gradient alone"
    subjects = {
        "start_up": f"cold and warm starts of {counted(case.num_envs, 'environment')}",
        "tuned": "time to a reward, as shipped and tuned" if case.seed_per_round else "as shipped and tuned",
        "deterministic": "with deterministic settings and as shipped",
        "shared_gpu": "one training on a GPU and several",
        "versions": "with several versions of packages",
        "sweep": f"from few to many environments on {counted(case.world_size, 'rank')}{_without_training(case)}",
    }
    if kind in subjects:
        return subjects[kind]
    size = f"{case.num_envs_global:,} environments in all"
    if case.scaling == "weak":
        size = f"{environments_text(case.num_envs)} a rank"
    return f"{size}{_without_training(case)}"


def environments_text(number: int) -> str:
    """``1 environment``, ``4,096 environments``."""
    return f"{number:,} environment{'' if number == 1 else 's'}"


def _without_training(case: Case) -> str:
    """Return what a case does in place of training; empty where it trains."""
    what = {
        "environment_step": ", stepped without training",
        "rendering": ", rendering alone",
        "collection": ", collected by TorchRL without training",
        "collection_ray": ", collected by TorchRL in a process of Ray without training",
        "async_pipeline": ", simulated and learned from at the same time",
        "policy_rollout": ", a policy of LeRobot acting without training",
        "dataset_recording": ", recorded by LeRobot without training",
    }
    return what.get(case.workload, "")


def series_facts(rows: Sequence[CaseRow], kind: SeriesKind = "scaling") -> Html:
    """What the cases of one series have in common."""

    def values(name: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(row, name)) for row in rows))

    constant = "environments of all ranks together" if rows[0].scaling == "strong" else "environments of each rank"
    what = f"{values('task')} with {values('rl_library')} on the stack {values('stack')}, device {values('device')}"
    rule = f"minibatch rule {values('minibatch_rule')}"
    if kind == "start_up":
        varied = "whether compiled kernels are there before a round"
        return paragraph(f"{what}, {rule}. Varied: {varied}, on {values('topology')} nodes x ranks.")
    settings = {
        "tuned": "one setting of the libraries at a time",
        "deterministic": "whether settings are deterministic",
        "shared_gpu": "the number of trainings on a GPU",
        "versions": "the versions of packages",
        "sweep": "the number of environments",
    }
    if kind in settings:
        return paragraph(f"{what}, {rule}. Varied: {settings[kind]}, on {values('topology')} nodes x ranks.")
    if len({row.world_size for row in rows}) == 1:
        return paragraph(f"{what}, {rule}, on {values('topology')} nodes x ranks.")
    scaling = values("scaling").capitalize()
    return paragraph(f"{scaling} scaling of {what}, {rule}. Held constant: the number of {constant}.")
