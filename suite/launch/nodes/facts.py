"""Describe a node and what env_check finds on it: ``python -m suite.launch.nodes.facts`` prints JSON."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import get_args

from pydantic import TypeAdapter

from suite.env_check.report import Report, env_check, read_report
from suite.env_check.request import Request, add_worker_options
from suite.external.machine import capture
from suite.schema.record import Device, Environment, Stack


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    environment: Environment
    report: Report


def arguments_for(request: Request) -> tuple[str, ...]:
    """Arguments of labscale's own Python on the node."""
    return ("-m", "suite.launch.nodes.facts", *request.options())


def read(text: str) -> NodeFacts:
    """The facts in what this program prints. Raises ValueError for any other text."""
    found = json.loads(text)
    if not isinstance(found, dict) or set(found) != {"environment", "report"}:
        raise ValueError("not the facts of a node")
    return NodeFacts(
        environment=TypeAdapter(Environment).validate_python(found["environment"]),
        report=read_report(json.dumps(found["report"])),
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="suite.launch.nodes.facts")
    parser.add_argument("--stack", choices=get_args(Stack), required=True)
    parser.add_argument("--device", choices=get_args(Device))
    add_worker_options(parser)
    asked = vars(parser.parse_args(argv))
    request = Request(**asked | {"worker_packages": tuple(asked["worker_packages"])}, everything=False)
    facts = {"environment": asdict(capture()), "report": json.loads(env_check(request).as_json())}
    sys.stdout.write(json.dumps(facts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
