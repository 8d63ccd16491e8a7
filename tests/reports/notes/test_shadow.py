"""What the notes of version 2026.11 say of the Shadow Hand with telemetry is what results in git say."""

from reports.topics.losses.losses import losses
from suite.statistics.aa_noise import noise_budget, twin_pairs
from tests.fixtures.results.committed_results import NOTES, committed_set


def test_what_the_notes_say_of_two_gpus_holds() -> None:
    found = committed_set("h200-x2-shadow")
    campaign = found.campaign
    one, two = sorted((row for row in campaign.rows if row.rounds_completed), key=lambda row: row.world_size)
    assert (one.rounds_completed, two.rounds_completed) == (3, 3)
    assert all(record.telemetry for record in campaign.completed)
    assert one.total_fps is not None
    assert two.total_fps is not None
    assert f"{one.total_fps:,.0f} frames per second and {two.total_fps:,.0f}, an efficiency of" in NOTES
    assert two.scaling_efficiency is not None
    assert two.scaling_efficiency_interval is not None
    low, high = (100 * value for value in two.scaling_efficiency_interval)
    assert f"an efficiency of {100 * two.scaling_efficiency:.1f} % ({low:.1f} to {high:.1f})" in NOTES
    noise = noise_budget(twin_pairs((*campaign.results, *campaign.twins)))
    assert noise is not None
    assert f"h200-x2-shadow/SHA256SUMS), A/A {100 * noise:.1f} %)" in NOTES


def test_what_the_notes_say_they_lose_holds() -> None:
    found = committed_set("h200-x2-shadow")
    (loss,) = losses(found.campaign)
    told = {part for part, (low, high) in loss.part_intervals.items() if not low <= 0 <= high}
    assert told == {"waiting"}
    within = "what the all-reduce, learning, drawing, physics and the rest lose is within the noise."
    assert f"{100 * loss.parts['waiting']:.1f} % is lost to waiting for the other rank; {within}" in NOTES
