"""The open division beside the closed one, as tables. Pure."""

import statistics
from collections.abc import Sequence

from reports.analysis.curves import variant_of
from reports.analysis.divisions import Equal, Gain
from reports.analysis.time_to_reward import SMOOTHING_WINDOW
from reports.display.html import (
    MISSING,
    Html,
    count,
    estimated,
    html_table,
    link,
    paragraph,
    percent,
    rounds_text,
    together,
)
from suite.schema.record import Case
from suite.statistics.aa_noise import NOISE_LEVEL

_PAIRS: tuple[Equal, ...] = ("frames", "iterations", "time")


def who(case: Case) -> str:
    """Of what closed cases are told apart by, within a series."""
    return f"{case.rl_library}, {case.stack}, {case.device}, {case.topology} nodes x ranks"


def by_closed(found: Sequence[Gain]) -> dict[str, list[Gain]]:
    """Case id of the closed case -> its tuned ones."""
    groups: dict[str, list[Gain]] = {}
    for gain in found:
        groups.setdefault(gain.closed.case_id, []).append(gain)
    return groups


def throughput(found: Sequence[Gain]) -> Html:
    """``found``: beside one closed case, which is the first row."""
    closed = found[0].closed
    table = html_table(
        ["Case", "Changed", "Total FPS", "Gain", "Against the noise", "Rounds"],
        [
            [
                closed.case_id,
                "as upstream ships it",
                count(found[0].closed_fps),
                "1",
                "",
                rounds_text([found[0].closed_rounds], [found[0].closed_settled]),
            ],
            *(
                [
                    gain.case.case_id,
                    ", ".join(gain.changes),
                    count(gain.fps),
                    estimated(gain.gain),
                    gain.speed,
                    rounds_text([gain.rounds], [gain.settled]),
                ]
                for gain in found
            ),
        ],
        label=f"Throughput of the open division beside {closed.case_id}",
        num_text_columns=2,
        text_headings=("Against the noise", "Rounds"),
    )
    return together([table, paragraph(_noise(found[0].noise))])


def _noise(noise: float | None) -> str:
    if noise is None:
        return (
            "No case ran twice as an A/A pair, so only the intervals say what is noise; where there is none either, it"
            " is unknown."
        )
    return (
        f"A case ran twice under two names, an A/A pair. In {NOISE_LEVEL:.0%} of all ways to deal its rounds into two"
        f" the medians lie at most {percent(noise)} apart. A smaller gain, or one whose interval contains 1, shows"
        " nothing."
    )


def learning(found: Sequence[Gain]) -> Html:
    """Rewards as ``closed / tuned``; how much sooner the closed case's reward is there."""
    closed, target = found[0].closed, found[0].target
    table = html_table(
        [
            "Case",
            "Learns",
            *(f"Reward, equal {equal}" for equal in _PAIRS),
            "Iterations to the closed case's reward",
            "Sooner by a factor of",
        ],
        (
            [
                gain.case.case_id,
                gain.learning,
                *(_rewards(gain, equal) for equal in _PAIRS),
                " / ".join(_iterations(gain)),
                estimated(gain.sooner),
            ]
            for gain in found
        ),
        label=f"Learning of the open division beside {closed.case_id}",
        num_text_columns=2,
    )
    words = (
        f"Closed / tuned, medians over {SMOOTHING_WINDOW} iterations, where the one that has less of it ends. Rounds of"
        " one seed that learn the same count once, and three that do not are needed on both sides to say more than"
        " whether they are the same. A campaign has one seed, and others may learn otherwise."
    )
    reached = (
        "The reward of the closed case did not rise, so there is none to wait for."
        if target is None
        else f"The closed case's reward is the most that every round of it reached, {target:.3g}. How much sooner the"
        " tuned case has it: its iterations at their steady pace, without start-up and compilation. Where not every"
        " run has it in its iterations, the table says how many do; more runs make it less likely that all do."
    )
    return together([table, paragraph(f"{words} {reached}")])


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
            "Times the closed case's",
            "Against the noise",
            "Learns",
            "Sooner at the closed reward, times",
            "Rounds, closed and tuned",
        ],
        (
            [
                link(short_name(gain, found), address),
                count(gain.fps),
                estimated(gain.gain),
                gain.speed,
                gain.learning,
                gain.runs_with_target if gain.ended_before else estimated(gain.sooner),
                rounds_text([gain.closed_rounds, gain.rounds], [gain.closed_settled, gain.settled]),
            ]
            for gain in found
        ),
        label=label,
        text_headings=("Against the noise", "Learns", "Rounds, closed and tuned"),
    )


def short_name(gain: Gain, found: Sequence[Gain]) -> str:
    """Short name of a tuned case among others: its variant, and what they are held against where that differs."""
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
