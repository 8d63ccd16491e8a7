"""Changes of a stored case that no check of types finds."""

import contextlib
import json
import random
from typing import Any, Final

from tests.fuzz.mutations import any_number, json_bytes

WORDS: Final = (
    "weak", "rl_games", "rsl_rl", "skrl", "skrl_jax", "sb3", "torchrl", "lerobot", "ovphysx", "cpu", "cuda",
    "rendering", "all_reduce", "open", "collection", "collection_ray", "async_pipeline", "policy_rollout", "../x",
    "cartpole-strong", "a/b", "x" * 300, "",
)  # fmt: skip
OUTCOMES: Final = ("completed", "crashed", "skipped")
MOMENTS: Final = ("2026-13-01T00:00:00Z", "2026-11-21T10:00:00", "0001-01-01T00:00:00Z", "x")


def changed_case(rng: random.Random, stored: Any) -> bytes:
    """Anything anywhere; or values that no check of types finds, in one round or in all alike."""
    if rng.random() < 0.2:
        return json_bytes(rng, stored)
    copy = json.loads(json.dumps(stored))
    result = copy["labscale"]
    for _ in range(rng.choice((1, 1, 2, 3))):
        change = rng.choice((change_column, change_columns, change_ranks, change_case, change_leaf, change_leaf))
        seed = rng.random()
        rounds = result["runs"] if rng.random() < 0.6 else rng.sample(result["runs"], 1)
        for record in rounds:
            with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # changed before
                change(random.Random(seed), result["configuration"] if change is change_case else record)  # noqa: S311
    return json.dumps(copy).encode()


def any_sample(rng: random.Random) -> float | None:
    return rng.choice((None, 0, 1, -1, 1e-12, 1e-300, 1e12, 1e17, 1e300, 0.5, any_number(rng)))


def change_column(rng: random.Random, record: Any) -> None:
    """Change a column of one rank or of all: its length, one value or all values, gaps, or remove it."""
    if not record["ranks"]:
        return
    name = rng.choice(list(record["ranks"][0]["samples"]))
    what, value, at = rng.randrange(6), any_sample(rng), rng.random()
    for rank in record["ranks"] if rng.random() < 0.6 else rng.sample(record["ranks"], 1):
        column = rank["samples"].get(name, [])
        index = int(at * len(column))
        match what:
            case 0:
                rank["samples"].pop(name, None)
            case 1:
                del column[index:]
            case 2:
                column[:] = [value] * len(column)
            case 3 | 4:
                column[index : index + 1] = [value]
            case _:
                column.append(value)


def change_columns(rng: random.Random, record: Any) -> None:
    """All of them alike, on all ranks: fewer iterations, or one more."""
    length = rng.choice((0, 1, 2, 3, 4, 5))
    for rank in record["ranks"]:
        for column in rank["samples"].values():
            column[:] = column[:length] if length < 5 else [*column, *column[-1:]]


def change_ranks(rng: random.Random, record: Any) -> None:
    ranks = record["ranks"]
    match rng.randrange(4):
        case 0:
            ranks.clear()
        case 1:
            rng.shuffle(ranks)
        case 2 if ranks:
            ranks.append(ranks[-1])
        case _ if ranks:
            ranks.pop()


def change_case(rng: random.Random, case: Any) -> None:
    """Change a field of the case to another value of the same type."""
    name = rng.choice(list(case))
    if isinstance(case[name], bool):
        case[name] = not case[name]
    elif isinstance(case[name], int | float):
        case[name] = rng.choice((0, 1, 2, 3, -1, 10**6, 10**30, case[name] * 2))
    elif isinstance(case[name], str):
        case[name] = rng.choice(WORDS)


def change_leaf(rng: random.Random, record: Any) -> None:
    """Another number, word or nothing, wherever a walk from the top ends."""
    node = record
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(node[key], dict | list) or rng.random() < 0.05:
            break
        node = node[key]
    old = node[key]
    if isinstance(old, str):
        node[key] = rng.choice((*OUTCOMES, *MOMENTS, None))
    elif old is None or isinstance(old, int | float):
        node[key] = rng.choice((any_sample(rng), *OUTCOMES, -1, 2, True))
    else:
        node[key] = rng.choice((None, type(old)()))
