"""Print what README.md has from results: ``python -m reports.site.readme``.

A finding whose entry in ``findings.toml`` has ``readme`` is shown with these figures, which are those of the pages.
"""

import sys
from collections.abc import Collection, Sequence
from typing import Final

from reports.data.words import task_name, versions_of
from reports.figures.compare import Row
from reports.figures.lines import Figure, estimate
from reports.figures.tables import rows_by_id, runs_of
from reports.pages import hardware
from reports.sets.findings import Finding, read_findings
from reports.sets.version import Version
from reports.site.publish import read_versions
from suite.errors import ReportError
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.options.command_line import exit_code_of
from suite.statistics.speed import side_of

BEGIN: Final = "<!-- begin: made by `python -m reports.site.readme` -->"
BEGIN_WHERE: Final = "<!-- begin: what ran where, made by `python -m reports.site.readme` -->"
END: Final = "<!-- end -->"
FOLDER: Final = "reports/results"  # as README.md links to it
PACKAGES: Final = {
    "Isaac Lab": "isaaclab", "Newton": "newton", "torch": "torch", "rl-games": "rl-games", "rsl-rl-lib": "rsl-rl-lib",
    "NCCL": "nccl",
}  # fmt: skip


def findings(versions: Sequence[Version]) -> str:
    """Show the findings that README.md has, newest version first, and the versions of packages that all share.

    Raises:
        ReportError: a figure is missing or has no interval, or the runs differ in a version.
    """
    lines, rows = [], []
    for version in versions:
        for finding in (finding for finding in read_findings(version.folder) if finding.readme):
            shown = [_figure(version, finding, name) for name in finding.readme]
            lines.append("\n".join([f"- **{finding.claim}**", *(f"  - {_measured(version, row)}" for row in shown)]))
            rows += [_configuration(version, _ratio(version, row)["of"]) for row in shown]
    return "\n".join([*lines, "", f"Each figure compares means over runs in fresh processes. {_versions(rows)}."])


def _figure(version: Version, finding: Finding, name: str) -> Figure:
    row = rows_by_id(version).get(name)
    if row is None or row["low"] is None:
        raise ReportError(f"The finding {finding.id} shows {name}, no figure with an interval. Choose another.")
    return row


def _ratio(version: Version, row: Figure) -> Figure:
    """The figure that compares two configurations: of how much sooner a reward comes, that of their speeds."""
    return rows_by_id(version)[row["of"].rpartition("&")[2].partition("=")[0]] if row["kind"] == "product" else row


def _configuration(version: Version, selection: str) -> Row:
    """The work of the configuration that a figure is of, or over."""
    wanted = dict(part.split("=", 1) for part in selection.split("&"))
    return next(row for row in runs_of(version).configurations if all(row[name] == wanted[name] for name in wanted))


def _measured(version: Version, row: Figure) -> str:
    of, over = (_configuration(version, _ratio(version, row)[side]) for side in ("of", "over"))
    (result_set,) = (result_set for result_set in version.sets if result_set.name == of["set"])
    where = f"[{result_set.title.partition(':')[0]}]({FOLDER}/{version.name}/{result_set.name})"
    sure = side_of(estimate(row)) if row["kind"] == "share_kept" else row["status"]
    return f"{_subject(of, over)}: {_value(row)}; {sure}; {_number(version, row)}; {where})."


def _number(version: Version, row: Figure) -> str:
    """How many runs a figure is of; of how much sooner a reward comes on more GPUs, how many seeds."""
    if row["kind"] != "product":
        return counted(row["runs"], "run")
    return counted(int(rows_by_id(version)[f"{row['id'].rpartition('/')[0]}/seeds"]["value"]), "seed")


def _value(row: Figure) -> str:
    factor, digits = (100, 1) if row["kind"] == "share_kept" else (1, 2)
    value, low, high = (f"{factor * row[name]:.{digits}f}" for name in ("value", "low", "high"))
    words = {
        "share_kept": f"an efficiency of {value} %", "sooner": f"the reward as shipped comes {value} times as soon",
        "ratio": f"{value} times the frames/s", "product": f"the reward comes {value} times as soon",
    }  # fmt: skip
    return f"{words[row['kind']]} ({low} to {high}"


def _subject(of: Row, over: Row) -> str:
    """Task, library, and in what the two configurations differ."""
    if of["gpus"] != over["gpus"]:
        what = f"{of['size']:,} environments {'per GPU' if of['scaling'] == 'weak' else 'in total'}, {of['gpus']} GPUs"
    elif of["trainings_per_gpu"] != over["trainings_per_gpu"]:
        what = f"{of['trainings_per_gpu']} trainings at the same time"
    else:
        what = f"{of['environments']:,} environments in place of {over['environments']:,}"
    return f"{task_name(of['task'])}, {of['library']}, {what}"


def _versions(rows: Collection[Row]) -> str:
    packages = [versions_of(row) for row in rows]
    named = [f"{spoken} {_same({own[name] for own in packages})}" for spoken, name in PACKAGES.items()]
    return f"Versions: {', '.join(named)}, driver {_same({row['driver'] for row in rows})}"


def _same(values: Collection[str]) -> str:
    if len(values) != 1:
        raise ReportError(f"The runs behind README.md's findings differ: {sorted(values)}. Say so there.")
    return next(iter(values))


def _run() -> int:
    versions = read_versions(ROOT / FOLDER)
    print(BEGIN, findings(versions), END, "", BEGIN_WHERE, hardware.readme(versions[0]), END, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(_run))
