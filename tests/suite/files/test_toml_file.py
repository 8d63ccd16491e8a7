"""Lines and messages of strict TOML reading."""

from pathlib import Path

import pytest

from suite.errors import MatrixError
from suite.files.toml_file import NonEmptyTuple, TomlTable, read_toml


class Leaf(TomlTable):
    count: int


class Document(TomlTable):
    names: NonEmptyTuple[str]
    leaves: NonEmptyTuple[Leaf]
    tables: dict[str, Leaf]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "file.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    text = 'names = []\n\n[[leaves]]\ncount = "1"\n\n[[leaves]]\ncuont = 2\n\n[tables.one]\ncount = 1\ncolour = 3\n'
    path = write(tmp_path, text)
    with pytest.raises(MatrixError) as error:
        read_toml(path).validate(Document)
    head, *problems = str(error.value).splitlines()
    assert head.startswith(f"{path}: 5 problems")
    assert [problem.rpartition(": ")[0].split(": ")[:2] for problem in problems] == [
        ["  line 1", "names"],
        ["  line 4", "leaves[0].count"],
        ["  line 6", "leaves[1].count"],
        ["  line 7", "leaves[1].cuont"],
        ["  line 11", "tables.one.colour"],
    ]
    assert "'count'" in problems[3]


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"file\.toml: not valid TOML: .*line 2, column 2"):
        read_toml(write(tmp_path, "a = 1\nb\n"))


def test_a_missing_file_and_one_that_is_not_text_are_matrix_errors(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"none\.toml: cannot be read \(No such file or directory\)"):
        read_toml(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"a = '\xff'")
    with pytest.raises(MatrixError, match=r"not UTF-8 text .* at byte 5"):
        read_toml(binary)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a = {'[' * 5000}", "nested too deeply"),
        (f"a = {'9' * 5000}", "not valid TOML: Exceeds the limit"),
        (f"# {'a' * 2**20}", r"cannot be read \(Larger than 1 MiB\)"),
    ],
)
def test_what_no_table_needs_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=said):
        read_toml(write(tmp_path, text))
