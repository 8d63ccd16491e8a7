"""The sentences that a campaign ends with, on generated runs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.campaign.display.results import answers
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_machines import changed
from tests.fixtures.results.generated_results import make_case, make_result

NAME = "Isaac-Ant, rsl_rl"
SPREAD = (0.99, 1.0, 1.01, 1.0)


def ant(gpus: int, num_envs: int, time_s: float, spread: Sequence[float] = SPREAD) -> CaseResult:
    case = make_case("ant-weak", world_size=gpus, scaling="weak", num_envs_global=num_envs * gpus, device="cuda")
    return make_result(case, *(time_s * factor for factor in spread))


@pytest.mark.parametrize(
    ("other", "times", "verdict"),
    [
        (ant(2, 1024, 1.1), "1.82 times those of 1,024 on 1 GPU (", ": at least 80 %."),
        (ant(2, 1024, 1.25), "1.6 times those of 1,024 on 1 GPU (", ": within noise of 80 %."),
        (ant(2, 1024, 1.5), "1.33 times those of 1,024 on 1 GPU (", ": below 80 %."),
        (ant(2, 1024, 1.1, [1.0]), "1.82 times those of 1,024 on 1 GPU, 90.", ": too few runs."),
        (ant(1, 2048, 1.5), "1.33 times those of 1,024 on 1 GPU (", "): faster."),
        (ant(1, 2048, 2.0), "1 times those of 1,024 on 1 GPU (", "): within noise."),
    ],
)
def test_every_configuration_has_its_ratio_to_the_smallest_and_a_verdict(
    other: CaseResult, times: str, verdict: str
) -> None:
    (_, sentence) = answers([other, ant(1, 1024, 1.0)])[NAME]
    assert times in sentence
    assert sentence.endswith(verdict)


def test_what_failed_or_has_several_nodes_has_no_sentence() -> None:
    lost = changed([ant(1, 1024, 1.0)], lambda record: replace(record, outcome="crashed", reason="x"))
    nodes = make_case("ant-weak", world_size=2, nnodes=2, scaling="weak", device="cuda")
    assert answers([*lost, make_result(nodes, *SPREAD)]) == {}


def probed(result: CaseResult, probes_s: Sequence[float]) -> CaseResult:
    records = []
    for record, probe_s in zip(result.rounds, probes_s, strict=True):
        (rank,) = record.ranks
        samples = {**rank.samples, "core_probe_time_s": (probe_s,) * record.case.iterations}
        records.append(replace(record, ranks=(replace(rank, samples=samples),)))
    return replace(result, rounds=tuple(records))


@pytest.mark.parametrize(
    ("power", "sentence"),
    [(1.0, "waits for one CPU core: a core twice as fast would make it up to 1.9 times"), (0.0, "hardly limits")],
)
def test_how_far_a_training_waits_for_its_core(power: float, sentence: str) -> None:
    """A slope of 1 is pulled a little towards 0.5."""
    slowness = (1.0, 1.5, 2.0, 1.2, 1.7, 1.1, 1.9, 1.4)
    (_, core) = answers([probed(ant(1, 1024, 1.0, [slow**power for slow in slowness]), slowness)])[NAME]
    assert sentence in core
