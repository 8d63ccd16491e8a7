"""Facts that the figures of pages rest on, where the verifier has a copy of its own."""

from pathlib import Path

import pytest

from reports.sets.version import read_version
from reports.topics.others.published import parse_figure, read_published
from reports.topics.others.published_figures import published_figures
from reports.verification.pages.others import published_beside, published_tables
from reports.verification.samples.set_folder import read_set
from reports.verification.samples.stored_version import StoredVersion
from tests.fixtures.results.generated_results import smoke_results, write_results


@pytest.mark.parametrize("text", ["590322", "2.7M", "10.2M", "950k", "64k", "490k", "1.25k"])
def test_a_figure_of_others_is_the_same_range(text: str) -> None:
    figure = parse_figure(text)
    assert published_tables.printed(text) == pytest.approx((figure.value, figure.low, figure.high), rel=1e-12)


def test_nothing_is_computed_of_a_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A topic can be deleted, and its file with it."""
    read = published_tables.read.__wrapped__
    assert len(read()["table"]) == len(read_published().table)
    monkeypatch.setattr(published_tables, "PATH", tmp_path / "published.toml")
    assert read() == {"source": (), "table": ()}
    monkeypatch.setattr(published_tables, "read", read)
    assert published_beside.figures(StoredVersion(sets=())) == {}


def test_nothing_is_said_of_others_where_no_speed_means_something(tmp_path: Path) -> None:
    """The page is not there then."""
    assert published_figures(read_version(write_results(smoke_results(), tmp_path), name="v")) == {}
    one = read_set(tmp_path, root=tmp_path)
    assert published_beside.figures(StoredVersion(sets=(one,))) == {}
