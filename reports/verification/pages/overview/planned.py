"""How many cases of the matrix ``full`` have a completed run, as *Limits* says; its file is read as data."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reports.verification.finding import Json
from reports.verification.samples.stored_version import StoredVersion

NAME: Final = "full"
PATH: Final = Path(__file__).parents[4] / "tasks" / "matrices" / f"{NAME}.toml"


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return what is said of the matrix, and of each series of it that has cases without a completed run."""
    completed = [stored for one in version.sets for stored in one.of_report if stored.completed]
    measured = {stored.case_id for stored in completed}
    on_nodes = {stored.case_id for stored in completed if not any(map(_is_emulated, stored.completed))}
    planned = list(_case_ids())
    missing = Counter(case_id.partition("/")[0] for case_id in planned if case_id not in measured)
    return {
        f"matrix {NAME}": {
            "cases": len(planned),
            "completed": sum(case_id in measured for case_id in planned),
            "emulated": sum(case_id in measured - on_nodes for case_id in planned),
        },
        **{f"{NAME}: {series}": {"not_measured": number} for series, number in missing.items()},
    }


def _case_ids() -> Iterator[str]:
    """Yield the cases of each table: every library on every topology, on the stack that is used where none is named."""
    for table in tomllib.loads(PATH.read_text(encoding="utf-8"))["series"]:
        is_fixed = table.get("minibatch_rule") == "fixed_updates"
        for library in table["rl_libraries"]:
            for topology in table["topologies"]:
                nnodes, ranks = map(int, topology.split("x"))
                num_envs = table["num_envs"] * (1 if table["scaling"] == "strong" else nnodes * ranks)
                case_id = f"{table['name']}/{library}-kitless-n{num_envs}-{topology}"
                yield f"{case_id}-fixed_updates" if is_fixed else case_id


def _is_emulated(record: Json) -> bool:
    return bool((record.get("transport") or {}).get("emulated"))
