"""Changes of bytes, text, JSON documents and TOML text. The generator given decides all, so a seed repeats them."""

import copy
import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

CHANGES: Final = (1, 1, 1, 2, 4)  # at a time: most inputs should be wrong in one place
DEEP: Final = 20_000  # more nesting than Python's recursion takes
LONG: Final = 5_000  # longer than a path, a file name or the digits of an int that Python reads

TEXTS: Final = (
    "", " ", "\n", "a\nb", "\t", "\r", "\x00", "\x1b[31m", "\x7f", "\u2028", "\ufeff", "é", "\u00b2", "\U0001d7d9",
    "\udcff", ".", "..", "/", "../..", "/dev/null", "/dev/zero", "/proc/self/mem", "~", "~nobody-there", "-", "--",
    "-1", "0", "a" * LONG, "9" * LONG, "a/" * LONG, "*", "[", "[!", "{}", "{x}", "%s", "$HOME", "$(id)", "`id`", "'",
    '"', "\\", "1e999", "nan", "inf", "-inf", "0x10", "1_000", " 1", "1,", ",", "1,,2", "true", "null", "None", "a b",
    "a=b", "=", "localhost", "::1", "[::1]", "user@host", "2026-02-30", "1.2.3", ">=1", "@", "#", ";", "|", "<script>",
)  # fmt: skip
NUMBERS: Final = (
    0, 1, -1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30,
    0.0, -0.0, 0.5, 1e-308, 1e308, -1e308, math.inf, -math.inf, math.nan,
)  # fmt: skip
TOML_VALUES: Final = (
    *(str(number) for number in NUMBERS), "true", "false", "[]", "{}", "[[]]", "[1, 'a']", "{ a = 1 }", '""', "''",
    '"""', "'''a\nb'''", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "2026-02-30", "0xff", "1_000", "9" * LONG,
    "[" * LONG, "{a=" * 500, '"\\u0000"', '"\\uD800"', '"a\\nb"', "'../../x'", f'"{"a" * LONG}"', "[1, 1, 1]", "[-1]",
)  # fmt: skip


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """One to four changes: bytes flipped, cut out, doubled, put in, the end cut off."""
    for _ in range(rng.choice(CHANGES)):
        start, end = _span(rng, len(data))
        data = rng.choice((
            lambda data=data, start=start: data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :],
            lambda data=data, start=start, end=end: data[:start] + data[end:],
            lambda data=data, start=start, end=end: data[:end] + data[start:end] + data[end:],
            lambda data=data, start=start: data[:start] + rng.randbytes(rng.randint(1, 8)) + data[start:],
            lambda data=data, start=start: data[:start],
            lambda data=data, start=start: data[:start] + rng.choice(_PIECES) + data[start:],
        ))()  # fmt: skip
    return data


def mutate_text(rng: random.Random, text: str) -> str:
    """One to four changes of characters or lines; may hold lone surrogates, which UTF-8 cannot say."""
    for _ in range(rng.choice(CHANGES)):
        lines = text.split("\n")
        if len(lines) > 1 and rng.random() < 0.5:
            text = "\n".join(_mutate_list(rng, lines))
        else:
            start, end = _span(rng, len(text))
            middle = rng.choice(("", text[start:end] * 2, rng.choice(TEXTS), rng.choice(TEXTS), str(any_number(rng))))
            text = text[:start] + middle + text[end:]
    return text


def mutate_json(rng: random.Random, document: Any) -> Any:
    """A copy with one to four values replaced, taken out, doubled or renamed, anywhere in it."""
    changed = copy.deepcopy(document)
    for _ in range(rng.choice(CHANGES)):
        changed = _mutate_somewhere(rng, changed)
    return changed


def json_bytes(rng: random.Random, document: Any) -> bytes:
    """The document mutated and written; sometimes then mutated as bytes, which leaves no JSON."""
    text = json.dumps(mutate_json(rng, document))
    if rng.random() < 0.02:
        text = rng.choice(("[" * DEEP, '{"a":' * DEEP, text.replace(":", ":" + "[" * DEEP, 1)))
    data = text.encode("utf-8", "surrogatepass")
    return mutate_bytes(rng, data) if rng.random() < 0.2 else data


def mutate_toml(rng: random.Random, text: str) -> bytes:
    """A TOML file with values replaced, keys renamed, statements and tables left out or doubled; or any text at all."""
    lines = text.split("\n")
    for _ in range(rng.choice(CHANGES)):
        index = rng.randrange(len(lines))
        key, equals, _ = lines[index].partition("=")
        match rng.randrange(6) if equals else rng.randrange(4, 6):
            case 0:
                lines[index] = f"{key}= {rng.choice(TOML_VALUES)}"
            case 1:
                lines[index] = f"{key}= {rng.randint(1, 9) * 10 ** rng.randint(0, 5)}"
            case 2:
                others = [line for line in lines if line.startswith(f"{key}=")]
                lines[index] = rng.choice(others)
            case 3:
                lines[index] = lines[index].replace(key.strip(), rng.choice(("", "x", "a.b", '"\\n"', "1")), 1)
            case _:
                lines = _mutate_list(rng, lines) or [""]
    changed = "\n".join(lines)
    if rng.random() < 0.1:
        changed = mutate_text(rng, changed)
    data = changed.encode("utf-8", "surrogatepass")
    return mutate_bytes(rng, data) if rng.random() < 0.05 else data


def any_text(rng: random.Random) -> str:
    return rng.choice(TEXTS) if rng.random() < 0.8 else "".join(chr(rng.randrange(1, 256)) for _ in range(12))


def any_number(rng: random.Random) -> float:
    return rng.choice(NUMBERS)


def any_value(rng: random.Random) -> Any:
    """Any that JSON has, of any type."""
    makers: Sequence[Callable[[], Any]] = (
        lambda: any_text(rng), lambda: any_number(rng), lambda: None, lambda: rng.random() < 0.5, list, dict,
        lambda: [any_number(rng), any_text(rng)], lambda: {any_text(rng): any_number(rng)}, lambda: [None] * 300,
    )  # fmt: skip
    return rng.choice(makers)()


_PIECES: Final = (
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"[" * DEEP,
    b"9" * LONG,
    b"NaN",
    b"\\ud800",
    b"{",
    b"}",
)


def _span(rng: random.Random, length: int) -> tuple[int, int]:
    start = rng.randint(0, length)
    return start, min(length, start + rng.choice((1, 1, 2, 8, 64, 1024)))


def _mutate_list[T](rng: random.Random, items: Sequence[T]) -> list[T]:
    """One item left out, doubled or moved, or all from there on left out."""
    changed = list(items)
    if not changed:
        return changed
    index, other = rng.randrange(len(changed)), rng.randrange(len(changed))
    match rng.randrange(4):
        case 0:
            del changed[index]
        case 1:
            changed.insert(other, changed[index])
        case 2:
            changed[index], changed[other] = changed[other], changed[index]
        case _:
            del changed[index + 1 :]
    return changed


def _mutate_somewhere(rng: random.Random, node: Any) -> Any:
    """Walk down at random; the deeper the document, the deeper most changes."""
    if not isinstance(node, dict | list) or not node or rng.random() < 0.08:
        return _changed_value(rng, node)
    if isinstance(node, list):
        if rng.random() < 0.15:
            return _mutate_list(rng, node)
        index = rng.randrange(len(node))
        node[index] = _mutate_somewhere(rng, node[index])
        return node
    key = rng.choice(list(node))
    match rng.randrange(8):
        case 0:
            del node[key]
        case 1:
            node[any_text(rng)] = node.pop(key)
        case 2:
            node[key] = node[rng.choice(list(node))]
        case _:
            node[key] = _mutate_somewhere(rng, node[key])
    return node


def _changed_value(rng: random.Random, value: Any) -> Any:
    if isinstance(value, str) and rng.random() < 0.5:
        return mutate_text(rng, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((-value, value + 1, value - 1, value * 2, value / 2, value * 1000, float(value), str(value)))
    return any_value(rng)
