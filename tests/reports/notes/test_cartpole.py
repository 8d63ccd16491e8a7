"""What the notes of version 2026.11 say of Cartpole on two GPUs and of memory is what results in git say."""

from reports.topics.losses.losses import losses
from suite.statistics.aa_noise import noise_budget, twin_pairs
from tests.fixtures.results.committed_results import NOTES, committed_set


def test_what_the_notes_say_of_updates_kept_holds() -> None:
    campaign = committed_set("h200-x2-cartpole").campaign
    one, two = (
        next(row for row in campaign.rows if row.case_id.endswith(f"-n8192-{topology}-fixed_updates"))
        for topology in ("1x1", "1x2")
    )
    assert (one.rounds_completed, two.rounds_completed) == (3, 3)
    assert all(record.telemetry for record in campaign.completed)
    assert one.total_fps is not None
    assert two.total_fps is not None
    assert two.total_fps < one.total_fps
    assert two.scaling_efficiency is not None
    assert two.scaling_efficiency_interval is not None
    low, high = (100 * value for value in two.scaling_efficiency_interval)
    noise = noise_budget(twin_pairs((*campaign.results, *campaign.twins)))
    assert noise is not None
    (loss,) = losses(campaign)
    learning_s = [(row.iteration_time_s or 0) * campaign.inside[row.case_id].shares["learning"] for row in (one, two)]
    said = (
        f"h200-x2-cartpole/SHA256SUMS), three rounds, telemetry, A/A {100 * noise:.1f} %): {one.total_fps:,.0f} frames "
        f"per second and {two.total_fps:,.0f}, an efficiency of {100 * two.scaling_efficiency:.1f} % ({low:.1f} to "
        f"{high:.1f}). Updates with half the minibatch take {100 * (learning_s[1] / learning_s[0] - 1):.0f} % longer "
        "than with all of it: "
        f"{100 * loss.parts['learning']:.1f} % of an iteration is lost there, {100 * loss.parts['all-reduce']:.1f} % "
        "to the all-reduce."
    )
    assert said in NOTES


def test_what_the_notes_say_of_as_many_environments_on_each_gpu_holds() -> None:
    campaign = committed_set("h200-x2-per-gpu").campaign
    one, two = campaign.rows
    assert (one.rounds_completed, two.rounds_completed) == (3, 3)
    assert all(record.telemetry for record in campaign.completed)
    assert two.scaling_efficiency is not None
    assert two.scaling_efficiency_interval is not None
    low, high = (100 * value for value in two.scaling_efficiency_interval)
    noise = noise_budget(twin_pairs((*campaign.results, *campaign.twins)))
    assert noise is not None
    (loss,) = losses(campaign)
    parts = [100 * loss.parts[name] for name in ("all-reduce", "learning", "waiting")]
    assert f"efficiency of {100 * two.scaling_efficiency:.1f} % ({low:.1f} to {high:.1f}) on two H200s" in NOTES
    assert (
        f"h200-x2-per-gpu/SHA256SUMS), three rounds, telemetry, A/A {100 * noise:.1f} %): {one.total_fps:,.0f} and "
        f"{two.total_fps:,.0f} frames per second. Of an iteration {parts[0]:.1f} % is lost to the all-reduce, "
        f"{parts[1]:.1f} % to slower learning, {parts[2]:.1f} % to waiting."
    ) in NOTES


def test_what_the_notes_say_of_memory_that_ran_out_holds() -> None:
    for name, text in (
        ("h100-memory", "the search for the most environments found room for {} and none for {}."),
        ("h200-memory", "there was room for {} and none for {}."),
        ("h200-memory-2", "the search came to its answer in 5 runs: room for {} and none for {}."),
    ):
        rows = committed_set(name).campaign.rows
        most = max(row.num_envs for row in rows if row.rounds_completed)
        (failed,) = (row for row in rows if not row.rounds_completed)
        assert {failure.outcome for failure in failed.failures} == {"oom"}
        assert text.format(most, failed.num_envs) in NOTES
        if "answer" in text:  # `--capacity` halves the gap until it is an eighth of what fits
            assert failed.num_envs - most <= most / 8
            assert len(rows) == 5
        else:
            assert failed.num_envs - most > most / 8
