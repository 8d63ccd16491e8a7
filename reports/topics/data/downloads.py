"""The files that a site offers: each set's results as they are in git, and one CSV of all configurations."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from reports.analysis.rows import CaseRow
from reports.sets.env_checks import ENV_CHECKS
from reports.sets.figures_file import FILE, text
from reports.sets.measured import Measured, measured_of_cases
from reports.sets.version import ResultSet, Version
from reports.verification.hashes import SUMS, members
from reports.verification.weaknesses import WEAKNESSES
from suite.files.input_file import read_input


@dataclass(frozen=True)
class StoredFiles:
    """``files`` has paths by their names below the folder; ``sums`` is the file of their hashes, if there is one."""

    name: str
    title: str
    files: Mapping[str, Path]
    sums: Path | None

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file by its name."""
        return {name: path.stat().st_size for name, path in self.files.items()}


def stored_files(version: Version) -> Sequence[StoredFiles]:
    """Return those of every set, in the order of the version."""
    return [
        _stored(one.name or "results", one.title or "Results", one.folder, _members(one.folder)) for one in version.sets
    ]


def env_check_files(version: Version) -> StoredFiles:
    """Return what env_check said beside the sets, which has no samples; its files may be none."""
    folder = version.folder / ENV_CHECKS
    paths = sorted(folder.glob("*.json")) if version.env_checks else []
    return _stored(ENV_CHECKS, "What env_check said beside the sets", folder, paths)


def with_env_checks(version: Version) -> Sequence[StoredFiles]:
    """Return all of them."""
    of_hosts = env_check_files(version)
    return [*stored_files(version), *([of_hosts] if of_hosts.files else [])]


def counts(found: Sequence[StoredFiles]) -> Mapping[str, int]:
    """Return the number of files, and the sum of their bytes."""
    return {"files": sum(len(one.sizes) for one in found), "bytes": sum(sum(one.sizes.values()) for one in found)}


def _stored(name: str, title: str, folder: Path, paths: Sequence[Path]) -> StoredFiles:
    sums = folder / SUMS
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    return StoredFiles(name, title, files, sums if files and sums.is_file() else None)


def _members(folder: Path) -> list[Path]:
    """What a campaign's folder has to publish: not its raw files, which hold paths of the machine."""
    return members(folder) or sorted(folder.glob("*.json"))


DATA_FOLDER: Final = "data"
CSV_NAME: Final = "configurations.csv"


@cache
def files(version: Version) -> dict[str, dict[str, bytes]]:
    """Title of a group -> address below ``DATA_FOLDER`` -> content."""
    groups = {"All configurations in one table": _of_all(version)} if version.sets else {}
    for one in with_env_checks(version):
        paths = {**one.files, **({SUMS: one.sums} if one.sums else {})}
        groups[one.title] = {f"{one.name}/{name}": read_input(path) for name, path in paths.items()}
    return groups


def _of_all(version: Version) -> dict[str, bytes]:
    """The published figures, and the list of weaknesses, without which a check of these files would name them again."""
    path = version.folder / WEAKNESSES
    known = {path.name: read_input(path)} if path.is_file() else {}
    return {CSV_NAME: configurations_csv(version).encode(), FILE: text(version).encode(), **known}


def write(version: Version, site: Path) -> None:
    for group in files(version).values():
        for name, content in group.items():
            path = site / DATA_FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def configurations_csv(version: Version) -> str:
    """One line a configuration; an empty field is a value that was not measured. Units are in the names."""
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
        "configuration": row.case_id,
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
        "runs": row.rounds,
        "runs_completed": row.rounds_completed,
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
