"""Files that every command writes anew: whole or as they were."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.campaign.capacity.search import write_found
from suite.campaign.identity import opened
from suite.campaign.runs.upstream import write_pairs
from suite.errors import StoreError
from suite.files.json_file import replace_json
from suite.statistics.aa_noise import write_noise


@contextmanager
def no_room() -> Iterator[None]:
    """Files of this process take no byte more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_old_content_stays_until_the_new_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    replace_json({"noise_budget": 0.1}, path)
    with pytest.raises(StoreError, match=r"noise\.json cannot be written: .+\. Make room or give access"), no_room():
        replace_json({"noise_budget": 0.2}, path)
    assert json.loads(path.read_text()) == {"noise_budget": 0.1}
    assert list(tmp_path.iterdir()) == [path]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.json")}


def test_every_such_file_of_a_campaign_is_written_so(tmp_path: Path) -> None:
    def write() -> None:
        write_noise([], tmp_path / "noise.json")
        write_pairs([], tmp_path / "upstream.json")
        write_found([], tmp_path / "capacity.json")
        with opened(tmp_path / "out", {"matrix": "smoke"}):
            pass

    write()
    before = contents(tmp_path)
    assert len(before) == 4
    for path in before:
        others = {other: content for other, content in before.items() if other != path}
        for other in others:
            other.unlink()
        with pytest.raises(StoreError, match="cannot be written"), no_room():
            write()
        for other, content in others.items():
            other.write_bytes(content)
    assert contents(tmp_path) == before
