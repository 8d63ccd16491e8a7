"""What the notes of version 2026.11 say of rounds in turns is what results in git say."""

from collections.abc import Sequence
from statistics import median

from reports.topics.trust.turns_check import turns_check
from suite.schema.record import RunRecord
from suite.statistics.core_speed import SLOWED
from suite.statistics.reduce import counted_iterations, iteration_times_s
from suite.statistics.turns_check import measured_both_ways
from tests.fixtures.results.committed_results import NOTES, committed_set


def probes_s(record: RunRecord) -> list[float]:
    return [probe_s for probe_s in record.ranks[0].samples["core_probe_time_s"] if probe_s is not None]


def between_fast_probes_s(records: Sequence[RunRecord], limit_s: float) -> list[float]:
    """Times of counted iterations whose probes before and after were fast."""
    found = []
    for record in records:
        times_s, column = iteration_times_s(record), record.ranks[0].samples["core_probe_time_s"]
        for index in counted_iterations(record):
            around = (column[index - 1], column[index])
            if None not in around and max(probe_s for probe_s in around if probe_s is not None) < limit_s:
                found.append(times_s[index])
    return found


def test_what_the_notes_say_of_turns_holds() -> None:
    one = committed_set("h200-turns")
    pairs = measured_both_ways((*one.campaign.results, *one.copies))
    found = turns_check(pairs)
    assert found is not None
    assert found.over_all.interval is not None
    low, high = (100 * (value - 1) for value in found.over_all.interval)
    assert [case.is_within_noise for case in found.cases].count(True) == 3
    (outside,) = (case for case in found.cases if not case.is_within_noise)
    (pair,) = (pair for pair in pairs if pair.in_turns.case.case_id == outside.case_id)
    assert (outside.case_id.split("-")[0], pair.in_turns.case.rl_library) == ("ant", "rl_games")
    assert {(case.in_turns_rounds, case.alone_rounds) for case in found.cases} == {(6, 6)}
    assert outside.ratio.interval is not None
    least, most = (100 * (value - 1) for value in outside.ratio.interval)
    records = [record for both in pairs for result in (both.in_turns, both.alone) for record in result.completed]
    limit_s = SLOWED * min(min(probes_s(record)) for record in records)
    turning_us, alone_us = (
        1e6 * median(median(probes_s(record)) for record in result.completed) for result in (pair.in_turns, pair.alone)
    )
    fast, fast_alone = (between_fast_probes_s(one.completed, limit_s) for one in (pair.in_turns, pair.alone))
    over_all, own = (100 * (1 - value) for value in (found.over_all.value, outside.ratio.value))
    minutes = found.in_turns_minutes
    said = (
        f"an iteration takes {over_all:.1f} % less in turns ({low:.1f} to {high:+.1f} %). Three cases are within their "
        f"noise. Ant with rl_games takes {own:.1f} % less in turns ({least:.1f} to {most:.1f} %), on faster cores: the "
        f"core probe takes {turning_us:.0f} µs there and {alone_us:.0f} µs alone, in the median of the rounds. Between "
        f"two fast probes its iterations take {median(fast):.3f} s in turns ({len(fast)} iterations) and "
        f"{median(fast_alone):.3f} s alone ({len(fast_alone)}). A round in turns cost {minutes:.2f} GPU-minutes and "
        f"one alone {found.alone_minutes:.2f}."
    )
    assert said in NOTES
