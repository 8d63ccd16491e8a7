"""A few attempts on every target of ``nox -s fuzz``, with seeds that stay."""

import pytest

from tests.fuzz.target import Target, attempt_once
from tests.fuzz.targets import TARGETS

ATTEMPTS = 100


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_mutated_input_ends_in_a_traceback_or_hangs(target: Target) -> None:
    for seed in range(ATTEMPTS):
        finding = attempt_once(target, seed)
        assert finding is None, f"seed {seed}, input in {finding.folder}:\n{finding.traceback}"
