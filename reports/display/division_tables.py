"""Tuned cases compared with the case as shipped, in sentences and tables. Pure."""

import statistics
from collections.abc import Sequence

from reports.analysis.curves import variant_of
from reports.analysis.divisions import Equal, Gain
from reports.analysis.time_to_reward import CONVERGED_SHARE, SMOOTHING_WINDOW
from reports.display.html import (
    MISSING,
    Html,
    count,
    estimated,
    html_table,
    link,
    paragraph,
    rounds_text,
    seconds,
    together,
)
from suite.files.wording import counted
from suite.schema.record import Case
from suite.statistics.intervals import Estimate

_PAIRS: tuple[Equal, ...] = ("frames", "iterations", "time")


def who(case: Case) -> str:
    """Return what distinguishes cases as shipped within a series."""
    return f"{case.rl_library}, {case.stack}, {case.device}, {case.topology} nodes x ranks"


def by_closed(found: Sequence[Gain]) -> dict[str, list[Gain]]:
    """Case id of the closed case -> its tuned ones."""
    groups: dict[str, list[Gain]] = {}
    for gain in found:
        groups.setdefault(gain.closed.case_id, []).append(gain)
    return groups


def has_seeds(gain: Gain) -> bool:
    """Whether both sides ran with several seeds, so that the time to a reward says more than of one seed."""
    return min(gain.seeds) > 1


def time_to_reward(gain: Gain) -> str:
    """How much sooner a tuned case has the reward of the case as shipped, over the seeds."""
    shipped_s, tuned_s = gain.time_to_target_s
    if gain.target is None or shipped_s is None:
        return "The reward as shipped did not rise, so there is none to wait for."
    seeds = f"over {counted(min(gain.seeds), 'seed')}"
    if gain.sooner is None or tuned_s is None:
        return f"{gain.runs_with_target} had the reward as shipped, {gain.target:.3g}, in their iterations."
    return (
        f"A reward of {gain.target:.3g} comes {estimated(gain.sooner)} times as soon{_judged(gain.sooner)}, {seeds}:"
        f" {estimated(tuned_s, seconds)} s of training tuned, {estimated(shipped_s, seconds)} s as shipped."
    )


def _judged(sooner: Estimate) -> str:
    if sooner.interval is None or not sooner.interval[0] <= 1 <= sooner.interval[1]:
        return ""
    return ", so not surely sooner or later"


def throughput(found: Sequence[Gain]) -> Html:
    """``found``: of one case as shipped, which is the first row."""
    closed = found[0].closed
    return html_table(
        ["Case", "Changed", "Total FPS", "Gain", "Verdict", "Rounds"],
        [
            [
                closed.case_id,
                "as shipped",
                count(found[0].closed_fps),
                "1",
                "",
                rounds_text([found[0].closed_rounds]),
            ],
            *(
                [
                    gain.case.case_id,
                    ", ".join(gain.changes),
                    count(gain.fps),
                    estimated(gain.gain),
                    gain.speed,
                    rounds_text([gain.rounds]),
                ]
                for gain in found
            ),
        ],
        label=f"Throughput of tuned cases and of {closed.case_id}",
        num_text_columns=2,
        text_headings=("Verdict", "Rounds"),
    )


def learning(found: Sequence[Gain]) -> Html:
    """Rewards as ``as shipped / tuned``; how much sooner a tuned case has the reward as shipped."""
    closed, target = found[0].closed, found[0].target
    table = html_table(
        [
            "Case",
            "Learns",
            *(f"Reward, equal {equal}" for equal in _PAIRS),
            "Iterations to the reward as shipped",
            "Seconds to it",
            "Reward, times as soon",
        ],
        (
            [
                gain.case.case_id,
                gain.learning,
                *(_rewards(gain, equal) for equal in _PAIRS),
                " / ".join(_iterations(gain)),
                " / ".join(estimated(time_s, seconds) for time_s in gain.time_to_target_s),
                estimated(gain.sooner),
            ]
            for gain in found
        ),
        label=f"Learning of tuned cases and of {closed.case_id}",
        num_text_columns=2,
    )
    words = (
        f"As shipped / tuned: medians over {SMOOTHING_WINDOW} iterations, at the end of the shorter of the two. Rounds"
        " that learn the same count once. Three different ones are needed on both sides to say more than whether they"
        f" are the same. {_seeds(found[0])}"
    )
    return together([table, paragraph(f"{words} {_target(found[0], target)}")])


def _seeds(gain: Gain) -> str:
    if has_seeds(gain):
        return f"Each round has a seed of its own: {counted(gain.seeds[0], 'seed')} as shipped."
    return "All rounds have one seed, and others may learn otherwise."


def _target(gain: Gain, target: float | None) -> str:
    if target is None:
        return "The reward as shipped did not rise, so there is none to wait for."
    meant = "the most that every round as shipped reached"
    if has_seeds(gain):
        meant = f"{CONVERGED_SHARE:.0%} of the rise to {meant}, because the noise of a level decides when it is reached"
    return (
        f"The reward as shipped is {meant}: {target:.3g}. The time to it is a round's iterations at its later pace,"
        " without start-up and compilation. If not every run has it in its iterations, the table says how many do; with"
        " more runs it is less likely that all do."
    )


def _rewards(gain: Gain, equal: Equal) -> str:
    if equal not in gain.rewards:
        return MISSING
    at = gain.rewards[equal]
    return " / ".join(f"{statistics.median(side):.3g}" if side else MISSING for side in (at.closed, at.tuned))


def _iterations(gain: Gain) -> list[str]:
    closed, tuned = (MISSING if needed is None else f"{needed:.0f}" for needed in gain.iterations_to_target)
    return [closed, gain.runs_with_target if gain.ended_before else tuned]


def headline(found: Sequence[Gain], *, address: str, label: str) -> Html:
    """``address``: where the rest is. A case without a gain says so by its cells."""
    return html_table(
        [
            "Change",
            "Total FPS",
            "Times as shipped",
            "Verdict",
            "Learns",
            "Reward as shipped, times as soon",
            "Rounds, as shipped and tuned",
        ],
        (
            [
                link(short_name(gain, found), address),
                count(gain.fps),
                estimated(gain.gain),
                gain.speed,
                gain.learning,
                gain.runs_with_target if gain.ended_before else estimated(gain.sooner),
                rounds_text([gain.closed_rounds, gain.rounds]),
            ]
            for gain in found
        ),
        label=label,
        text_headings=("Verdict", "Learns", "Rounds, as shipped and tuned"),
    )


def short_name(gain: Gain, found: Sequence[Gain]) -> str:
    """Short name of a tuned case among others: its variant, and what it is compared with where that differs."""
    variant = variant_of(gain.case)
    twice = [other for other in found if variant_of(other.case) == variant]
    if len(twice) == 1:
        return variant
    differs = [
        name
        for name in ("rl_library", "num_envs", "topology", "stack", "device")
        if len({getattr(other.case, name) for other in twice}) > 1
    ]
    return ", ".join([variant, *(str(getattr(gain.case, name)) for name in differs)])
