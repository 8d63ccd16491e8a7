"""``findings.toml`` of the published versions: claims without figures, each with the sets that it rests on."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.fixtures.results.committed_results import RESULTS

FILES = sorted(RESULTS.parent.glob("*/findings.toml"))
FIELDS = {"id", "claim", "so_what", "status", "sets"}
NAMES = re.compile(r"\bH[12]00s?\b|\b[24] GPUs\b|\bStable-Baselines3\b")  # digits that are no result
MOST = 27  # over all versions, so that each can be read


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_finding_has_its_fields_and_sets_that_exist(path: Path) -> None:
    for finding in tomllib.loads(path.read_text())["finding"]:
        assert FIELDS <= finding.keys() <= FIELDS | {"replaces"}
        assert finding["status"] in {"clear", "within noise", "too few runs", "failed"}
        assert finding["sets"]
        assert [name for name in finding["sets"] if not (path.parent / name / "SHA256SUMS").is_file()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_claim_is_one_sentence_without_figures(path: Path) -> None:
    for finding in tomllib.loads(path.read_text())["finding"]:
        for text in (finding["claim"], finding["so_what"], finding.get("replaces", "None.")):
            assert re.fullmatch(r"[^.]+\.", text)
            assert re.search(r"\d", NAMES.sub("", text)) is None, text


def test_findings_are_few_and_their_ids_differ() -> None:
    ids = [finding["id"] for path in FILES for finding in tomllib.loads(path.read_text())["finding"]]
    assert 0 < len(ids) <= MOST
    assert len(ids) == len(set(ids))
