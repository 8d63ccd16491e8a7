"""Videos on the page of a task: those that a set has, with the hashes that it stored."""

from pathlib import Path

from reports.sets.version import Version, read_version
from reports.topics.data.downloads import write
from reports.topics.tasks.page import videos
from suite.records.videos import video_path
from tests.fixtures.results.films import store_film
from tests.fixtures.results.generated_results import full_results, write_results

RESULTS = full_results()
ANTS = [result.case.case_id for result in RESULTS if result.case.series == "ant-weak"][:3]


def version_of(folder: Path) -> Version:
    return read_version(folder, name="v")


def test_a_set_without_videos_shows_none(tmp_path: Path) -> None:
    assert videos(version_of(write_results(RESULTS, tmp_path)), "Ant").markup == ""


def test_the_first_video_is_open_and_the_others_are_in_a_fold(tmp_path: Path) -> None:
    store_film(write_results(RESULTS, tmp_path), *ANTS)
    shown = videos(version_of(tmp_path), "Ant").markup
    first, fold = shown.split("<details")
    assert (first.count("<video "), fold.count("<video ")) == (1, 2)
    assert "2 more videos" in fold
    assert 'controls muted playsinline preload="none"' in first
    assert 'aria-label="Video without sound: ' in first
    assert "4 environments" in first
    assert videos(version_of(tmp_path), "Cartpole").markup == ""


def test_the_files_are_where_the_page_looks_for_them(tmp_path: Path) -> None:
    store_film(write_results(RESULTS, tmp_path / "set"), ANTS[0])
    version = version_of(tmp_path / "set")
    shown = videos(version, "Ant").markup
    write(version, tmp_path / "site")
    shown = shown.partition("<figure")[2]
    for attribute in ("src", "poster", "href"):
        address = shown.partition(f'{attribute}="')[2].partition('"')[0]
        assert (tmp_path / "site" / address).is_file()
    assert (tmp_path / "site" / "data" / "results" / "videos.json").is_file()


def test_a_video_with_another_hash_is_not_shown(tmp_path: Path) -> None:
    store_film(write_results(RESULTS, tmp_path), *ANTS[:2])
    path = video_path(tmp_path, ANTS[0])
    path.write_bytes(path.read_bytes() + b"more")
    shown = videos(version_of(tmp_path), "Ant").markup
    assert shown.count("<video ") == 1
    assert ANTS[1] in shown
    assert ANTS[0] not in shown
