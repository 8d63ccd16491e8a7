"""What nodes are, and whether they are alike.

``python -m suite.launch.nodes.facts describe …`` prints the facts of the node that it runs on, as JSON.
``python -m suite.launch.nodes.facts compare REPORT…`` reads the report of env_check of each node of a job, and prints a
line for each difference; exit code 1 if there is one. A missing report is a difference.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from suite.env_check.nodes import differences
from suite.env_check.report import Report, env_check, read_report
from suite.env_check.request import Request, add_worker_options
from suite.errors import EnvironmentNotFit, SchedulerError
from suite.external.machine import capture
from suite.external.program import ProgramRun
from suite.files.input_file import read_text
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.contract import Asked, Launcher, Runtime
from suite.launch.native import on_this_machine
from suite.options import declaration
from suite.schema.record import Environment

MODULE: Final = "suite.launch.nodes.facts"


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    environment: Environment
    report: Report


def arguments_for(request: Request) -> tuple[str, ...]:
    """Arguments of labscale's own Python on the node, for its facts."""
    return ("-m", MODULE, "describe", *request.options())


def node_facts(text: str) -> NodeFacts:
    """The facts in what this program prints. Raises ValueError for any other text."""
    return TypeAdapter(NodeFacts).validate_json(text)


def provision_on_nodes(asked: Asked, ask: Callable[[Sequence[str]], dict[str, str]], launch: Launcher) -> Runtime:
    """Use the worker in the same folder on every node. ``ask`` runs labscale's own Python on each and returns its text.

    Raises:
        SchedulerError: a node does not run this program.
        EnvironmentNotFit: the nodes differ, and the user has not said that they may.
    """
    inner = on_this_machine(asked)
    facts = {host: node_answer(host, text, node_facts) for host, text in ask(arguments_for(asked.request)).items()}
    for difference in differences({host: node.report for host, node in facts.items()}):
        asked.say(f"The hosts differ: {difference}")
        if not difference.subject.startswith("check ") and not asked.options.place.ignore_env_check:
            raise EnvironmentNotFit(
                f"The hosts differ: {difference}. The slowest of them would set every figure. Leave out those that "
                "differ, or run anyway with --ignore-env-check."
            )
    first = next(iter(facts.values()))
    report = worst([node.report for node in facts.values()])
    return replace(inner, launch=launch, machine=first.environment, check=lambda: report)


def printed(runs: Mapping[str, ProgramRun], arguments: Sequence[str], advice: Callable[[str], str]) -> dict[str, str]:
    """What labscale's own Python printed on each node. Raises SchedulerError for one that does not run it."""
    for host, run in runs.items():
        if run.end != "ended" or run.exit_code != 0:
            raise SchedulerError(
                f"{host} does not run {' '.join(arguments[:2])} ({run.end}, exit code {run.exit_code}): "
                f"{last_words(run.stderr)}\n{advice(host)}"
            )
    return {host: run.stdout for host, run in runs.items()}


def worst(reports: Sequence[Report]) -> Report:
    """The first report with a failure, else the first with a warning: what only one host finds must be shown."""
    return min(reports, key=lambda report: (not report.failures, not report.warnings))


def node_answer[T](host: str, text: str, parse: Callable[[str], T]) -> T:
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
    declaration.add_options(parser, Request)
    add_worker_options(parser)
    request = replace(declaration.read(Request, parser.parse_args(argv[1:])), everything=False)
    facts = {"environment": asdict(capture()), "report": env_check(request).as_document()}
    sys.stdout.write(json.dumps(facts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
