"""A file changed in one place, and what may come of such an input."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import strategies as st

from suite import errors
from suite.errors import LabscaleError

LONG: Final = 5_000  # longer than a path, a file name or the digits of an int that Python reads
TEXTS: Final = (
    "", " ", "a\nb", "\x00", "\x1b[31m", "\ufeff", "\u00b2", "\udcff", "..", "/dev/zero", "-", "--", "~nobody-there",
    "a" * LONG, "9" * LONG, "a/" * LONG, "[" * LONG, "{a=" * 500, "*", "[!", "[1, 'a']", "$(id)", '"', '"""', "\\",
    '"\\uD800"', "1e999", "nan", "0,,1", "true", "a=b", "=", "0xff", "1.2.3", ">=1", "2026-02-30", "07:32:00",
    "0001-01-01T00:00:00Z", "[::1]", "user@host", "http://[::1", "unix://", "fd://", "tcp://[::1]:99999", "tcp://a:1/\udcff",
    "ant-*", "1", "0.01", "nodelist=a,b", "cuda,egl", "weak", "skrl_jax", "ovphysx", "cpu", "rendering", "completed",
)  # fmt: skip
OTHERS: Final[tuple[Any, ...]] = (
    0, 1, -1, 2**53 + 1, 2**63, -0.0, 1e308, float("inf"), float("nan"), None, True, [], {}, [None] * 300, {"a": 1},
)  # fmt: skip
PIECES: Final = (b"", b"\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * 20_000, b'{"a":' * 20_000, b"9" * LONG)

texts = st.sampled_from(TEXTS) | st.text(max_size=12)
values = texts | st.sampled_from(OTHERS).map(copy.deepcopy)


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
def changed(draw: st.DrawFn, content: bytes) -> bytes:
    """Change a value of JSON, a line of another text, or, now and then, bytes."""
    if draw(st.integers(0, 7)) == 0:
        start = draw(st.integers(0, len(content)))
        rest = content[start + draw(st.sampled_from((0, 1, 8, 64, len(content)))) :]
        return content[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=8)) + rest
    lines = [content.decode()] if content.startswith(b"{\n") else content.decode().split("\n")
    index = draw(st.integers(0, len(lines) - 1))
    if lines[index].startswith("{"):
        line = json.dumps(draw(changed_json(json.loads(lines[index]))))
    else:
        key, equals, _ = lines[index].partition("=")
        line = f"{key}{equals} {draw(texts | values.map(json.dumps))}"
    lines[index : index + 1] = draw(st.sampled_from(([line], [line], [], [lines[index], line])))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@st.composite
def changed_json(draw: st.DrawFn, node: Any) -> Any:
    """Replace a value, leave it out or rename it."""
    if not isinstance(node, dict | list) or not node or draw(st.integers(0, 11)) == 0:
        return draw(values)
    if isinstance(node, list):
        index = draw(st.integers(0, len(node) - 1))
        return node[:index] + draw(st.sampled_from(([draw(changed_json(node[index]))], []))) + node[index + 1 :]
    key = draw(st.sampled_from(list(node)))
    rest = {name: value for name, value in node.items() if name != key}
    kept = draw(st.sampled_from((key, key, key, draw(texts), None)))
    return rest if kept is None else {**rest, kept: draw(changed_json(node[key])) if kept == key else node[key]}
