"""What ``env_check --json`` printed on hosts of a version: the files of its folder ``env_check``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypedDict

from suite.files.json_file import read_json
from suite.schema.record import CheckResult

ENV_CHECKS: Final = "env_check"  # the folder


class _PrintedCheck(TypedDict):
    """What the pages take of a check of ``env_check --json``; the evidence is not looked at."""

    name: str
    feature: str
    verdict: Literal["ok", "warning", "failure", "not_needed", "not_checked"]
    found: str
    fault: str | None
    repair: str | None


class _Printed(TypedDict):
    host: str
    stack: str
    checks: list[_PrintedCheck]


@dataclass(frozen=True, kw_only=True)
class EnvCheckReport:
    """What ``env_check --json`` printed on one host."""

    name: str  # of its file
    host: str
    stack: str
    checks: tuple[CheckResult, ...]
    repairs: Mapping[str, str]  # name of a check -> what to do


def read_env_checks(folder: Path) -> tuple[EnvCheckReport, ...]:
    """By the names of the files. Raises StoreError for one that cannot be read."""
    # Not by a glob, which finds nothing in a folder that may not be listed.
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".json") if folder.exists() else []
    read = {path.stem: read_json(path, _Printed, next_step="Write it anew, with env_check --json.") for path in paths}
    return tuple(
        EnvCheckReport(
            name=name,
            host=report["host"],
            stack=report["stack"],
            checks=tuple(
                CheckResult(
                    name=check["name"],
                    feature=check["feature"],
                    verdict=check["verdict"],
                    found=check["found"],
                    fault=check["fault"],
                )
                for check in report["checks"]
            ),
            repairs={check["name"]: check["repair"] for check in report["checks"] if check["repair"]},
        )
        for name, report in read.items()
        if report
    )
