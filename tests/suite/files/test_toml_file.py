"""Lines and messages of strict TOML reading."""

import time
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


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    names = 'names = [\n"""\n[[leaves]]\n[tables.one]\ncolour = 3\n""",\n  ["leaves"]\n]\n'  # has no keys and no tables
    text = names + '\n[[leaves]]\ncount = "1"\n\n[[leaves]]\ncuont = 2\n\n[tables.one]\ncount = 1\ncolour = 3\n'
    path = tmp_path / "file.toml"
    path.write_text(text)
    with pytest.raises(MatrixError) as error:
        read_toml(path).validate(Document)
    head, *problems = str(error.value).splitlines()
    assert head.startswith(f"{path}: 5 problems")
    assert [problem.rpartition(": ")[0].split(": ")[:2] for problem in problems] == [
        ["  line 1", "names[1]"],
        ["  line 11", "leaves[0].count"],
        ["  line 13", "leaves[1].count"],
        ["  line 14", "leaves[1].cuont"],
        ["  line 18", "tables.one.colour"],
    ]
    assert "'count'" in problems[3]


@pytest.mark.parametrize(
    "statement",
    [
        'names = [\n  "a",\n  "b, # c"]',
        "names = [\n  'a', 'b, # c']",
        'names = [\n  \'a\\\', "b\\", # c"]',
        'names = ["""\nb, # c"""]',
        "names = ['''\nb, # c'''] # ]",
        'names = ["""\n\\"\\"\\"] [ \\\\""""", "#"]',
        'names = [ # "[\n  "a", # it\'s ]\n]',
    ],
)
def test_a_text_is_no_comment_and_no_bracket(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "file.toml"
    path.write_text(f'# "\n{statement}\nleaves = []\ntables."#a[".count = true\ncuont = 1\n')
    with pytest.raises(MatrixError) as error:
        read_toml(path).validate(Document)
    line = 2 + statement.count("\n")
    assert [problem.split(": ")[:2] for problem in str(error.value).splitlines()[1:]] == [
        [f"  line {line + 1}", "leaves"],
        [f"  line {line + 2}", "tables.#a[.count"],
        [f"  line {line + 3}", "cuont"],
    ]


def test_a_long_array_does_not_keep_its_reader_waiting(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text("values = [\n" + "  [1, 2], # a, b\n" * 4000 + "]\nnames = 1\n")
    before_s = time.process_time()
    with pytest.raises(MatrixError, match="line 4003: names"):
        read_toml(path).validate(Document)
    assert time.process_time() - before_s < 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = 1\nb\n", r"file\.toml: not valid TOML: .*line 2, column 2"),
        (b"a = '\xff'", "not UTF-8 text .* at byte 5"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, r"not valid TOML: Exceeds the limit [^;]+\. Correct"),
        (b"# " + b"a" * 2**20, r"cannot be read \(Larger than 1 MiB\)"),
        (None, r"file\.toml: cannot be read \(No such file or directory\)"),
    ],
)
def test_what_is_no_toml_file_of_a_person_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MatrixError, match=message):
        read_toml(path)
