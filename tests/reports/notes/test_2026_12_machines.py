"""What the notes of version 2026.12 say of each machine from the third pair of H200s on is what results in git say."""

import re
from collections.abc import Mapping

import pytest

from suite.statistics.reduce import steady_part
from tests.fixtures.results.version_2026_12 import NOTES, runs_of, set_of


@pytest.mark.parametrize(
    ("settled", "label", "commits"),
    [
        (
            "on the eighth {}, on the ninth",
            "one H200 (host V)",
            {"h200-lerobot": "93e02ba", "h200-start-up-ant": "655d21f"},
        ),
        (
            "on the ninth {}, on the tenth",
            "one H200 (host AA)",
            {"h200-releases-start-up": "db7c8d5", "h200-torchrl-camera-ray-2": "db7c8d5"},
        ),
        (
            "on the tenth {}, on the eleventh",
            "one H200 (host AB)",
            {"h200-start-up-shadow": "aa90c7d", "h200-torchrl-camera-ray-3": "aa90c7d"},
        ),
        (
            "on the eleventh {}, on the second pair of H200s",
            "one H200 (host AC)",
            {
                "h200-shared-ant": "f87744a",
                "h200-shared-ant-mps": "f87744a",
                "h200-shared-cartpole": "f87744a",
                "h200-shared-cartpole-mps": "f87744a",
            },
        ),
        (
            "on the third {}, on the fourth",
            "two GPUs (host W)",
            {"h200-x2-jax": "0afe994", "h200-x2-shared": "655d21f"},
        ),
        ("on the fourth {}, on the fifth", "two GPUs (host X)", {"h200-x2-deterministic": "f3e1c7a"}),
        (
            "on the fifth {}, and on the sixth",
            "two GPUs (host Y)",
            {"h200-x2-releases": "f3e1c7a", "h200-x2-jax-2": "99f6dfe"},
        ),
        (
            "and on the sixth {}. Their",
            "two GPUs (host Z)",
            {"h200-x2-releases-ant": "f3e1c7a", "h200-x2-jax-3": "99f6dfe"},
        ),
    ],
)
def test_a_machine_its_commits_and_how_many_runs_settled(settled: str, label: str, commits: Mapping[str, str]) -> None:
    runs = {name: runs_of(set_of(name)) for name in commits}
    every = [record for records in runs.values() for record in records]
    steady = sum(steady_part(record).flag is None for record in every)
    assert settled.format(f"{steady} of {len(every)}") in NOTES
    assert {record.environment.host_label for record in every} == {label}
    for name, commit in commits.items():
        assert {str(record.environment.git_commit)[:7] for record in runs[name]} == {commit}
        assert re.search(rf"`{name}`(?:(?:,| and) `[^`]+`)*, commit {commit}\b", NOTES)
