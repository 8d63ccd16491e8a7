"""What nodes are, and whether they are alike.

``python -m suite.launch.nodes.facts describe …`` prints the facts of the node that it runs on, as JSON.
``python -m suite.launch.nodes.facts compare REPORT…`` reads the report of env_check of each node of a job, and prints a
line for each difference; exit code 1 if there is one. A missing report is a difference.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, get_args

from pydantic import TypeAdapter, ValidationError

from suite.env_check.nodes import differences
from suite.env_check.report import Report, env_check, read_report
from suite.env_check.request import Request, add_worker_options
from suite.errors import EnvironmentNotFit, SchedulerError
from suite.external.machine import capture
from suite.files.input_file import read_text
from suite.files.paths import ROOT
from suite.schema.record import Device, Environment, Stack

MODULE: Final = "suite.launch.nodes.facts"


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    environment: Environment
    report: Report


def arguments_for(request: Request) -> tuple[str, ...]:
    """Arguments of labscale's own Python on the node, for its facts."""
    return ("-m", MODULE, "describe", *request.options())


def read(text: str) -> NodeFacts:
    """The facts in what this program prints. Raises ValueError for any other text."""
    printed = json.loads(text)
    if not isinstance(printed, dict) or set(printed) != {"environment", "report"}:
        raise ValueError("not the facts of a node")
    return NodeFacts(
        environment=TypeAdapter(Environment).validate_python(printed["environment"]),
        report=read_report(json.dumps(printed["report"])),
    )


def as_one(printed: Mapping[str, str], *, say: Callable[[str], None], differing_is_fine: bool) -> NodeFacts:
    """The environment of the first node, and the worst report of all, from what this program printed on each.

    Raises:
        SchedulerError: a node printed anything else.
        EnvironmentNotFit: the nodes differ, and ``differing_is_fine`` is False.
    """
    facts = {host: parsed(host, text, read) for host, text in printed.items()}
    for difference in differences({host: node.report for host, node in facts.items()}):
        say(f"The hosts differ: {difference}")
        if not difference.subject.startswith("check ") and not differing_is_fine:
            raise EnvironmentNotFit(
                f"The hosts differ: {difference}. The slowest of them would set every figure. Leave out those that "
                "differ, or run anyway with --ignore-env-check."
            )
    first = next(iter(facts.values()))
    return NodeFacts(environment=first.environment, report=worst([node.report for node in facts.values()]))


def worst(reports: Sequence[Report]) -> Report:
    """The first report with a failure, else the first with a warning: what only one host finds must be shown."""
    return min(reports, key=lambda report: (not report.failures, not report.warnings))


def parsed[T](host: str, text: str, parse: Callable[[str], T]) -> T:
    """What the host printed. Raises SchedulerError if that is anything else."""
    try:
        return parse(text)
    except (ValueError, ValidationError) as error:
        raise SchedulerError(
            f"{host} gives another answer than expected ({error}). Its login scripts must print nothing, and "
            f"the checkout in {ROOT} must be the same as here."
        ) from error


def compare(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the differences. ``paths`` are the reports, each with the node's stderr beside it as ``.txt``."""
    reports: dict[str, Report] = {}
    for path in paths:
        try:
            report = read_report(read_text(path) if path.exists() else "")
            name = report.host if report.host not in reports else f"{report.host} ({path.stem})"
            reports[name] = report
        except ValueError as error:
            errors = path.with_suffix(".txt")
            lines = read_text(errors).strip().splitlines() if errors.exists() else []
            yield f"{path.stem}: {error}; last: {lines[-1] if lines else 'no message'}"
    yield from map(str, differences(reports))


def main(argv: Sequence[str]) -> int:
    if argv[0] == "compare":
        lines = list(compare([Path(name) for name in argv[1:]]))
        print("\n".join(lines))
        return 1 if lines else 0
    parser = argparse.ArgumentParser(prog=f"{MODULE} describe")
    parser.add_argument("--stack", choices=get_args(Stack), required=True)
    parser.add_argument("--device", choices=get_args(Device))
    add_worker_options(parser)
    asked = vars(parser.parse_args(argv[1:]))
    request = Request(**asked | {"worker_packages": tuple(asked["worker_packages"])}, everything=False)
    facts = {"environment": asdict(capture()), "report": json.loads(env_check(request).as_json())}
    sys.stdout.write(json.dumps(facts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
