"""The precision in a case's reason to end: the stopping rule writes it, and ``verify`` computes it again."""

from pathlib import Path

import pytest

from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.said_precision import check_said_precision
from suite.records.store import read_case
from suite.statistics.stopping_rule import Rule, decide
from tests.fixtures.results.forged_version import PER_GPU, forge, sentences

BASE = "h200-x2-per-gpu/cases/cartpole-per-gpu/rl_games-kitless-n4096-1x1.json"
RULE = Rule(rounds=3, precision=0.01, max_rounds=3)


def ended(version: Path, name: str, why: str) -> list[str]:
    """Return what is said of the case's precision and rounds once its reason to end is ``why``."""
    forge(version, name, lambda document: document["labscale"].update(ended_because=why))
    return [sentence for sentence in sentences(version) if "by ended_because" in sentence]


def reason(version: Path, name: str, *, base: str | None = None) -> str:
    """Return the sentence of the stopping rule, from the stored rounds."""
    beside = read_case(version / base).rounds if base else ()
    return decide(read_case(version / name).rounds, RULE, baseline=beside).reason


@pytest.mark.parametrize(("name", "base"), [(BASE, None), (PER_GPU, BASE)], ids=["median", "ratio"])
def test_what_the_stopping_rule_writes_is_found_again(version: Path, name: str, base: str | None) -> None:
    why = reason(version, name, base=base)
    assert "is known to" in why
    assert not ended(version, name, why)


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        ("the median is known to 0.1% after 3 rounds", "precision of the median, by ended_because is 0.1%, expected"),
        (
            "the ratio to the baseline is known to 0.1% after 3 rounds beside 3 of the baseline",
            "precision of the ratio to the baseline, by ended_because is 0.1%, expected",
        ),
        ("the median is known to 9.9% after 5 rounds", "completed rounds, by ended_because is 3, expected 5"),
    ],
)
def test_another_precision_is_named(version: Path, forged: str, words: str) -> None:
    assert any(words in sentence for sentence in ended(version, PER_GPU, forged))


@pytest.mark.parametrize(
    ("times_s", "expected"), [({}, "nothing, without times"), ({0: 0.5, 1: 0.6}, "no interval")], ids=["none", "two"]
)
def test_few_rounds_have_no_precision(times_s: dict[int, float], expected: str) -> None:
    why = f"the median is known to 0.1% after {len(times_s)} rounds"
    one = StoredCase(where="c.json", case={}, rounds=[], ended_because=why, rule="", times_s=times_s)
    (finding,) = check_said_precision([one])
    assert (finding.got, finding.expected) == ("0.1%", expected)
