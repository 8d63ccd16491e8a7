"""What minibatch rules make of a batch."""

import pytest

from suite.matrix.cases import Minibatch, minibatch_per_rank
from suite.matrix.catalog import AgentEntry
from suite.schema.record import MinibatchRule

BY_SIZE = AgentEntry(num_steps_per_env=10, minibatch_size=400, learning_epochs=2)
BY_COUNT = AgentEntry(num_steps_per_env=10, num_minibatches=4, learning_epochs=2)


@pytest.mark.parametrize(
    ("agent", "rule", "minibatch_size", "size", "count"),
    [
        (BY_SIZE, "fixed_minibatch", None, 400, 2),
        (BY_SIZE, "fixed_updates", None, 200, 4),
        (BY_SIZE, "fixed_minibatch", 800, 800, 1),
        (BY_SIZE, "fixed_updates", 800, 400, 2),
        (BY_COUNT, "fixed_minibatch", None, 400, 2),
        (BY_COUNT, "fixed_updates", None, 200, 4),
        (BY_COUNT, "fixed_minibatch", 800, 800, 1),
        (BY_COUNT, "fixed_updates", 800, 400, 2),
    ],
)
def test_two_ranks_share_a_batch(
    agent: AgentEntry, rule: MinibatchRule, minibatch_size: int | None, size: int, count: int
) -> None:
    minibatch = minibatch_per_rank(
        agent, rule=rule, single_rank_batch=1600, batch=800, ranks_sharing=2, minibatch_size=minibatch_size
    )
    assert minibatch == Minibatch(size=size, count=count)
