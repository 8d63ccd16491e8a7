"""Files that every command writes anew: whole or as they were."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.files.json_file import replace_json


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
    path = tmp_path / "plan.json"
    replace_json({"runs": 0.1}, path)
    with pytest.raises(StoreError, match=r"plan\.json cannot be written: .+\. Make room or give access"), no_room():
        replace_json({"runs": 0.2}, path)
    assert json.loads(path.read_text()) == {"runs": 0.1}
    assert list(tmp_path.iterdir()) == [path]
