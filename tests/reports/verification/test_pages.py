"""Figures of pages: ``verify`` computes each of them again, and names each that somebody changed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reports.verification.finding import Json
from reports.verification.pages.every_page import PAGES, check_page, check_pages
from reports.verification.samples.older_versions import older_versions
from reports.verification.samples.set_folder import StoredSet, read_set
from reports.verification.samples.stored_version import PAGE_FIGURES, StoredVersion, stored_version
from suite.files.paths import ROOT

type Version = tuple[Path, list[StoredSet], tuple[StoredVersion, ...]]

VERSION = ROOT / "reports" / "results" / "2026.12"
DOCUMENT = json.loads((VERSION / PAGE_FIGURES).read_text())
STORED: dict[str, dict[str, dict[str, Any]]] = DOCUMENT["pages"]


@pytest.fixture(scope="module")
def sets() -> list[StoredSet]:
    return [read_set(path.parent, root=VERSION) for path in sorted(VERSION.glob("*/cases"))]


@pytest.fixture(scope="module")
def older() -> tuple[StoredVersion, ...]:
    return older_versions(VERSION, {})


@pytest.fixture
def version(sets: list[StoredSet], older: tuple[StoredVersion, ...], tmp_path: Path) -> Version:
    """A folder for a file of figures that a test may change, the sets of the version, and older versions."""
    folder = tmp_path / VERSION.name
    folder.mkdir()
    return folder, sets, older


def findings(version: Version, stored: Any) -> list[str]:
    folder, sets, older = version
    (folder / PAGE_FIGURES).write_text(json.dumps({**DOCUMENT, "pages": stored}))
    return [str(finding) for finding in check_pages(folder, sets, root=folder, older=older)]


@pytest.fixture(scope="module")
def again(sets: list[StoredSet], older: tuple[StoredVersion, ...]) -> dict[str, Json]:
    """What the verifier computes of each page."""
    version = stored_version(sets, DOCUMENT["roles"], name=VERSION.name, older=older)
    return {page: figures(version) for page, figures in PAGES.items()}


def differences(page: str, stored: Json, again: Mapping[str, Json]) -> list[str]:
    return [str(finding) for finding in check_page(PAGE_FIGURES, page, stored, again[page])]


def test_nothing_is_found_in_what_is_published(version: Version) -> None:
    assert findings(version, STORED) == []


def forged(value: Any) -> Any:
    """Another value of the same kind; a number of one thousandth more."""
    if isinstance(value, dict):
        name, first = next(iter(value.items()), ("more", None))
        return {**value, name: forged(first)}
    if isinstance(value, list):
        return [forged(value[0]), *value[1:]] if value else [0.5]
    if isinstance(value, bool) or value is None:
        return 0.5
    return f"{value} too" if isinstance(value, str) else value * 1.001 or 0.001


# The first thing of each page that has a figure, with that figure, so that each kind is forged once.
FIRST = {(page, name): of for page, said in STORED.items() for of, row in reversed(said.items()) for name in row}

BEFORE: dict[str, dict[str, dict[str, Any]]] = json.loads((VERSION.with_name("2026.11") / PAGE_FIGURES).read_text())[
    "pages"
]
FIRST_BEFORE = {
    (page, name): of
    for page, said in BEFORE.items()
    for of, row in reversed(said.items())
    for name in row
    if (page, name) not in FIRST
}


@pytest.mark.parametrize(("page", "name"), sorted(FIRST))
def test_a_forged_figure_of_a_page_is_named(again: Mapping[str, Json], page: str, name: str) -> None:
    of = FIRST[page, name]
    row = STORED[page][of]
    said = differences(page, {**STORED[page], of: {**row, name: forged(row[name])}}, again)
    assert [sentence.startswith(f"{PAGE_FIGURES}: {page}: {of}.{name}") for sentence in said] == [True]


@pytest.fixture(scope="module")
def again_before(older: tuple[StoredVersion, ...]) -> dict[str, Json]:
    return {page: PAGES[page](older[0]) for page in {page for page, _ in FIRST_BEFORE}}


@pytest.mark.parametrize(("page", "name"), sorted(FIRST_BEFORE))
def test_a_forged_figure_that_only_an_older_version_has_is_named(
    again_before: Mapping[str, Json], page: str, name: str
) -> None:
    of, stored = FIRST_BEFORE[page, name], BEFORE[page]
    changed = {**stored, of: {**stored[of], name: forged(stored[of][name])}}
    said = differences(page, changed, again_before)
    assert [sentence.startswith(f"{PAGE_FIGURES}: {page}: {of}.{name}") for sentence in said] == [True]


@pytest.mark.parametrize("page", sorted(STORED))
def test_a_thing_that_is_left_out_is_named(again: Mapping[str, Json], page: str) -> None:
    first, *others = STORED[page]
    (said,) = differences(page, {of: STORED[page][of] for of in others}, again)
    assert "the list of what it says is [" in said
    assert first in again[page]


def test_a_page_that_is_left_out_or_invented_is_named(version: Version) -> None:
    page = next(iter(STORED))
    (said,) = findings(version, {other: rows for other, rows in STORED.items() if other != page})
    assert said.startswith(f"{PAGE_FIGURES}: {page}: the list of what it says is []")
    (said,) = findings(version, {**STORED, "invented": {"all": {"ratio": 2}}})
    assert "the list of pages is ['invented'], expected []" in said


def test_every_page_of_the_list_is_published_somewhere() -> None:
    assert {*PAGES} == {*STORED, *BEFORE}


def test_roles_that_report_toml_does_not_say_are_named(version: Version) -> None:
    folder, sets, older = version
    (folder / PAGE_FIGURES).write_text(json.dumps(DOCUMENT))
    entries = (f'[[set]]\nfolder = "{name}"\n' for name in DOCUMENT["roles"])
    (folder / "report.toml").write_text("".join(entries).replace("\n", '\nrole = "archive"\n', 1))
    for name in DOCUMENT["roles"]:
        (folder / name / "cases").mkdir(parents=True)
    (said,) = [str(finding) for finding in check_pages(folder, sets, root=folder, older=older)]
    assert said.startswith(f"{PAGE_FIGURES}: roles[0][1] is scaling, expected archive.")


def test_a_set_of_another_contributor_is_another_machine_and_is_named(version: Version) -> None:
    folder, sets, older = version
    name = "h100-turns"
    others = {**DOCUMENT, "contributors": {name: "Somebody"}}
    (folder / PAGE_FIGURES).write_text(json.dumps(others))
    (folder / name / "cases").mkdir(parents=True)
    (folder / "report.toml").write_text(f'[[set]]\nfolder = "{name}"\n')
    said = [str(finding) for finding in check_pages(folder, sets, root=folder, older=older)]
    assert any(f"contributors.{name} is Somebody, expected nothing" in sentence for sentence in said)
    assert any("machines: cases on several machines.cases" in sentence for sentence in said)
