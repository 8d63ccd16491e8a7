"""What the notes of version 2026.11 say of how many environments to give a GPU is what results in git say."""

from reports.analysis.analysed_set import Campaign
from reports.analysis.time_split import inside, part_shares
from reports.topics.cost.sizes import size_choices
from reports.topics.losses.findings import fillings
from tests.fixtures.results.committed_results import NOTES, committed_version


def campaign_of(name: str) -> Campaign:
    sets = committed_version().sets
    return next(one.campaign for one in sets if one.name == name)


def test_what_the_notes_say_of_ants_environments_holds() -> None:
    sweep = campaign_of("h200-ant-sweep")
    (filling,), (choice,) = fillings(sweep), size_choices(sweep.results)
    *_, half, most = choice.sizes
    assert (2 * half.num_envs, most.of_most.value, {one.rounds for one in choice.sizes}) == (most.num_envs, 1.0, {3})
    assert half.of_most.interval is not None
    (busy,) = (one.busy_percent for one in filling if one.num_envs == most.num_envs)
    (largest,) = (result for result in sweep.results if result.case.case_id == most.case_id)
    low, high = (100 * end for end in half.of_most.interval)
    assert (
        f"Ant, learning included, makes {choice.sizes[0].total_fps:,.0f} frames per second with "
        f"{choice.sizes[0].num_envs} environments and {most.total_fps:,.0f} with {most.num_envs}, where learning is "
        f"{100 * part_shares(largest.completed)['learning']:.0f} % of an iteration and the GPU still runs a kernel "
        f"{busy:.0f} % of the time; half as many environments make {100 * half.of_most.value:.0f} % of that "
        f"({low:.0f} to {high:.0f};"
    ) in NOTES


def test_what_the_notes_say_of_ants_environments_with_rsl_rl_holds() -> None:
    searched, swept = campaign_of("h200-ant-capacity").results, campaign_of("h200-ant-sweep").results
    (choice,) = size_choices(searched)
    fewest, most = choice.sizes[0], choice.sizes[-1]
    assert {one.rounds for one in choice.sizes} == {1}
    assert [size.total_fps for size in choice.sizes] == sorted(size.total_fps for size in choice.sizes)  # still rising
    (largest,) = (result for result in searched if result.case.case_id == most.case_id)
    memory = inside(largest).gpu_memory_gb
    assert memory is not None
    (updates,) = {result.case.optimiser_steps for result in searched}
    theirs = sorted(result.case.optimiser_steps for result in swept)
    assert {result.case.minibatch_size for result in swept} == {swept[0].case.minibatch_size}
    assert (
        f"it makes {fewest.total_fps:,.0f} with {fewest.num_envs} environments and {most.total_fps:,.0f} with "
        f"{most.num_envs}, still rising, in {memory.median:.1f} GB of the GPU: an update is {updates} optimiser steps "
        f"there at every size, and {theirs[0]} to {theirs[-1]} with rl_games, whose minibatch stays the same."
    ) in NOTES


def test_what_the_notes_say_of_three_rounds_with_rsl_rl_holds() -> None:
    campaign = campaign_of("h200-ant-envs-rsl")
    (filling,), (choice,) = fillings(campaign), size_choices(campaign.results)
    *_, half, most = choice.sizes
    assert (2 * half.num_envs, most.of_most.value, {one.rounds for one in choice.sizes}) == (most.num_envs, 1.0, {3})
    assert half.of_most.interval is not None
    low, high = (100 * end for end in half.of_most.interval)
    (busy,) = (one.busy_percent for one in filling if one.num_envs == most.num_envs)
    (largest,) = (result for result in campaign.results if result.case.case_id == most.case_id)
    assert (
        f"it makes {choice.sizes[0].total_fps:,.0f} with {choice.sizes[0].num_envs} environments and "
        f"{most.total_fps:,.0f} with {most.num_envs}, where learning is "
        f"{100 * part_shares(largest.completed)['learning']:.0f} % of an iteration and the GPU runs a kernel "
        f"{busy:.0f} % of the time; half as many make {100 * half.of_most.value:.0f} % of that "
        f"({low:.0f} to {high:.0f})."
    ) in NOTES


def test_what_the_notes_say_of_few_environments_with_rsl_rl_holds() -> None:
    (choice,) = size_choices(campaign_of("h200-ant-small-rsl").results)
    fewest, half, most = choice.sizes
    assert (2 * half.num_envs, most.of_most.value, {one.rounds for one in choice.sizes}) == (most.num_envs, 1.0, {3})
    assert half.of_most.interval is not None
    low, high = (100 * end for end in half.of_most.interval)
    assert (
        f"it makes {fewest.total_fps:,.0f} with {fewest.num_envs} and {most.total_fps:,.0f} with {most.num_envs}: "
        f"half as many make {100 * half.of_most.value:.0f} % of that ({low:.0f} to {high:.0f})."
    ) in NOTES
