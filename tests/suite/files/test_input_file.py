"""Files that are named by a user: which are read."""

from pathlib import Path

import pytest

from suite.files.input_file import read_input


def test_a_file_is_read_whole_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"a" * 2**20)
    assert read_input(path, largest_bytes=2**20) == path.read_bytes()
    path.write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(OSError, match="Larger than 1 MiB"):
        read_input(path, largest_bytes=2**20)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Not a regular file"):
        read_input(Path("/dev/zero"))
    with pytest.raises(IsADirectoryError):
        read_input(tmp_path)
