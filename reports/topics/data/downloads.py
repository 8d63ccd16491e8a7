"""The files that a site offers: each set's results as they are in git, and one CSV of all cases."""

import csv
import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from reports.analysis.rows import CaseRow
from reports.sets.figures_file import FILE, text
from reports.sets.measured import Measured, measured_of_cases
from reports.sets.version import ResultSet, Version
from reports.topics.data.stored_files import with_env_checks
from reports.verification.hashes import SUMS
from reports.verification.weaknesses import WEAKNESSES
from suite.files.input_file import read_input

DATA_FOLDER: Final = "data"
CSV_NAME: Final = "cases.csv"


@cache
def files(version: Version) -> dict[str, dict[str, bytes]]:
    """Title of a group -> address below ``DATA_FOLDER`` -> content."""
    groups = {"All cases in one table": _of_all(version)} if version.sets else {}
    for one in with_env_checks(version):
        paths = {**one.files, **({SUMS: one.sums} if one.sums else {})}
        groups[one.title] = {f"{one.name}/{name}": read_input(path) for name, path in paths.items()}
    return groups


def _of_all(version: Version) -> dict[str, bytes]:
    """The published figures, and the list of weaknesses, without which a check of these files would name them again."""
    path = version.folder / WEAKNESSES
    known = {path.name: read_input(path)} if path.is_file() else {}
    return {CSV_NAME: cases_csv(version).encode(), FILE: text(version).encode(), **known}


def write(version: Version, site: Path) -> None:
    for group in files(version).values():
        for name, content in group.items():
            path = site / DATA_FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def cases_csv(version: Version) -> str:
    """One line a case; an empty field is a value that was not measured. Units are in the names."""
    lines = []
    for one in version.sets:
        measured = measured_of_cases(one.campaign)
        lines += [_line(one, row, measured[row.case_id]) for row in one.campaign.rows]
    table = io.StringIO()
    writer = csv.DictWriter(table, fieldnames=list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in line.items()} for line in lines)
    return table.getvalue()


def _no_formula(value: str | float | None) -> str | float | None:
    """A spreadsheet runs a text that begins so; with an apostrophe before it, it shows the text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _line(one: ResultSet, row: CaseRow, measured: Measured) -> Mapping[str, str | float | None]:
    low, high = row.iteration_time_interval_s or (None, None)
    least, most = row.scaling_efficiency_interval or (None, None)
    scales = one.campaign.has_speeds
    return {
        "set": one.name,
        "contributed_by": one.contributor.name if one.contributor else None,
        "case_id": row.case_id,
        "series": row.series,
        "scaling": row.scaling,
        "task": row.task,
        "rl_library": row.rl_library,
        "stack": row.stack,
        "device": row.device,
        "minibatch_rule": row.minibatch_rule,
        "topology": row.topology,
        "world_size": row.world_size,
        "num_envs": row.num_envs,
        "num_envs_global": row.num_envs_global,
        "rounds": row.rounds,
        "rounds_completed": row.rounds_completed,
        "iteration_time_s": row.iteration_time_s,
        "iteration_time_low_s": low,
        "iteration_time_high_s": high,
        "baseline_world_size": row.baseline_world_size,
        "speedup": row.speedup if scales else None,
        "ideal_speedup": row.ideal_speedup if scales else None,
        "scaling_efficiency": row.scaling_efficiency if scales else None,
        "scaling_efficiency_low": least if scales else None,
        "scaling_efficiency_high": most if scales else None,
        "interconnect": row.interconnect,
        "total_fps": row.total_fps,
        **measured,
    }
