"""Changes of JSON documents, TOML text and bytes, most in one place, and what may come of such an input."""

import copy
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import strategies as st

from suite import errors
from suite.errors import LabscaleError

DEEP: Final = 20_000  # more nesting than Python's recursion takes
LONG: Final = 5_000  # longer than a path, a file name or the digits of an int that Python reads
TEXTS: Final = (
    "", " ", "a\nb", "\t", "\x00", "\x1b[31m", "\u2028", "\ufeff", "\u00b2", "\U0001d7d9", "\udcff", ".", "..", "../..",
    "/dev/null", "/dev/zero", "/proc/self/mem", "~nobody-there", "-", "--", "-1", "a" * LONG, "9" * LONG, "a/" * LONG,
    "*", "[", "[!", "{}", "%s", "$(id)", "'", '"', "\\", "1e999", "nan", "-inf", "1_000", "1,,2", "null", "a=b", "=",
    "[::1]", "user@host", "2026-02-30", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z", "1.2.3", ">=1", "<script>",
    "weak", "rl_games", "skrl_jax", "lerobot", "ovphysx", "cpu", "cuda", "rendering", "all_reduce", "open",
    "async_pipeline", "a/b", "completed", "crashed", "skipped",
)  # fmt: skip
NUMBERS: Final = (
    0, 1, -1, 2, 3, 255, 2**31, 2**53 + 1, 2**63, -(2**63), 10**30, -0.0, 0.5, 1e-308, 1e308, 1e17, math.inf, math.nan,
)  # fmt: skip
TOML: Final = (
    *map(str, NUMBERS), "true", "[]", "{}", "[[]]", "[1, 'a']", "{ a = 1 }", '""', '"""', "1979-05-27", "07:32:00",
    "2026-02-30", "0xff", "[" * LONG, "{a=" * 500, '"\\uD800"', '"a\\nb"', "'../../x'", f'"{"a" * LONG}"', "[1, 1]",
)  # fmt: skip
PIECES: Final = (b"", b"\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * DEEP, b'{"a":' * DEEP, b"9" * LONG, b"NaN")

texts = st.sampled_from(TEXTS) | st.text(max_size=12)
numbers = st.sampled_from(NUMBERS)
values = texts | numbers | st.sampled_from((None, True, [], {}, [None] * 300, [0, "a"], {"a": 1})).map(copy.deepcopy)


@contextmanager
def taken_or_refused() -> Iterator[Path]:
    """Give an empty folder. The body ends, or raises a labscale error or an exit with the code of one."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LabscaleError)]
    with TemporaryDirectory(prefix="labscale-fuzz-") as folder, suppress(LabscaleError):
        try:
            yield Path(folder)
        except SystemExit as ended:
            if ended.code not in {0, None, *(kind.exit_code for kind in kinds)}:
                raise


@st.composite
def changed_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """Cut something out, or put something in."""
    start = draw(st.integers(0, len(data)))
    end = start + draw(st.sampled_from((0, 0, 1, 8, 64, len(data))))
    return data[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=8)) + data[end:]


@st.composite
def changed_json(draw: st.DrawFn, document: Any) -> bytes:
    """Replace, leave out, double or rename values, here or in every item of the lists on the way; sometimes bytes."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        path = draw(_paths(changed))
        change = draw(_changes())
        for container, key in list(_places(changed, path, everywhere=draw(st.booleans()))):
            with suppress(LookupError, TypeError, AttributeError, OverflowError):  # of another type
                change(container, key)
    data = json.dumps(changed).encode("utf-8", "surrogatepass")
    return draw(changed_bytes(data)) if draw(st.integers(0, 7)) == 0 else data


@st.composite
def _paths(draw: st.DrawFn, node: Any) -> list[Any]:
    path: list[Any] = []
    while isinstance(node, dict | list) and node and (not path or draw(st.integers(0, 11))):
        path.append(draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node)))))
        node = node[path[-1]]
    return path


def _places(node: Any, path: Sequence[Any], *, everywhere: bool) -> Iterator[tuple[Any, Any]]:
    """Yield each container with the key that a path ends with."""
    for key in range(len(node)) if everywhere and isinstance(node, list) else path[:1]:
        with suppress(LookupError, TypeError):
            if len(path) == 1:
                yield node, key
            else:
                yield from _places(node[key], path[1:], everywhere=everywhere)


@st.composite
def _changes(draw: st.DrawFn) -> Callable[[Any, Any], None]:
    value, text = draw(values), draw(texts)
    change: Callable[[Any, Any], None] = draw(
        st.sampled_from((
            lambda node, key: node.__setitem__(key, value),
            lambda node, key: node.__setitem__(key, value),
            lambda node, key: node.__setitem__(key, -node[key]),
            lambda node, key: node.__setitem__(key, node[key] * 2),
            lambda node, key: node.__delitem__(key),
            lambda node, key: node.__setitem__(text, node.pop(key)),
            lambda node, key: node.insert(key, node[key]),
            lambda node, key: node.__setitem__(slice(key, None), [value] * (len(node) - key)),
        ))
    )  # fmt: skip
    return change


@st.composite
def changed_toml(draw: st.DrawFn, text: str) -> bytes:
    """Replace values, rename keys, leave out, double or move lines; sometimes bytes."""
    lines = text.split("\n")
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        index, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        key, equals, _ = lines[index].partition("=")
        put = [f"{key}= {draw(st.sampled_from(TOML))}", f"{draw(texts)} = 1", draw(texts)] if equals else [draw(texts)]
        lines[index : index + 1] = draw(st.sampled_from(([], [lines[index], lines[other]], *([line] for line in put))))
        lines = lines or [""]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return draw(changed_bytes(data)) if draw(st.integers(0, 7)) == 0 else data
