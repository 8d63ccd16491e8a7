"""The card of tuned settings says what its cases ran on."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.sets.version import read_version
from reports.topics.tuning.card import card
from tests.fixtures.results.generated_results import make_case, make_result, on_gpus, write_results


@pytest.mark.parametrize("seed_per_round", [True, False])
@pytest.mark.parametrize(("num_gpus", "said"), [(1, "1 GPU, rl_games"), (2, "2 GPUs, rl_games")])
def test_the_card_says_how_many_gpus_ran(num_gpus: int, said: str, seed_per_round: bool, tmp_path: Path) -> None:
    shipped = make_case(
        "ant-open", world_size=num_gpus, scaling="weak", rl_library="rl_games", seed_per_round=seed_per_round
    )
    tuned = replace(shipped, case_id=f"{shipped.case_id}-fast", division="open", cpu_threads=4)
    results = [make_result(shipped, 0.5, 0.5, 0.5), make_result(tuned, 0.25, 0.25, 0.25)]
    found = card(read_version(write_results(on_gpus(results), tmp_path), name="v"))
    assert found is not None
    assert found.text.startswith(said)
    assert ("over 3 seeds" in found.text) == seed_per_round


def test_more_seeds_are_shown_before_a_larger_ratio(tmp_path: Path) -> None:
    """Ant has the larger ratio from three seeds; Cartpole, with four, is shown."""
    results = []
    for series, paces_s in (("ant-open", (0.5, 0.5, 0.5)), ("cartpole-open", (0.5, 0.5, 0.5, 0.5))):
        shipped = make_case(series, world_size=1, scaling="weak", rl_library="rl_games", seed_per_round=True)
        tuned = replace(shipped, case_id=f"{shipped.case_id}-fast", division="open", cpu_threads=4)
        faster = 4 if series == "ant-open" else 2
        results += [make_result(shipped, *paces_s), make_result(tuned, *(pace_s / faster for pace_s in paces_s))]
    found = card(read_version(write_results(on_gpus(results), tmp_path), name="v"))
    assert found is not None
    assert "over 4 seeds" in found.text
