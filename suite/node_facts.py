"""What a node of a cluster is, and what env_check says there: ``python -m suite.node_facts``, printed as JSON."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from pydantic import TypeAdapter

from suite import environment
from suite.env_check.report import Report, Request, env_check
from suite.env_check.report import read as read_report
from suite.schema import Device, Environment, Stack


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    environment: Environment
    report: Report


def arguments_for(request: Request) -> tuple[str, ...]:
    """For labscale's own Python on the node."""
    return ("-m", "suite.node_facts", *_options(request))


def report_arguments(request: Request) -> tuple[str, ...]:
    """The same for env_check's report alone."""
    return ("-m", "suite", "env_check", "--json", *_options(request))


def _options(request: Request) -> tuple[str, ...]:
    device = () if request.device is None else ("--device", request.device)
    worker = () if request.worker_python is None else ("--worker-python", str(request.worker_python))
    return ("--stack", request.stack, *device, *worker)


def read(text: str) -> NodeFacts:
    """Raises: ValueError, when the text is not what this prints."""
    found = json.loads(text)
    if not isinstance(found, dict) or set(found) != {"environment", "report"}:
        raise ValueError("not the facts of a node")
    return NodeFacts(
        environment=TypeAdapter(Environment).validate_python(found["environment"]),
        report=read_report(json.dumps(found["report"])),
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="suite.node_facts")
    parser.add_argument("--stack", choices=get_args(Stack), required=True)
    parser.add_argument("--device", choices=get_args(Device))
    parser.add_argument("--worker-python", type=Path)
    request = Request(**vars(parser.parse_args(argv)))
    facts = {"environment": asdict(environment.capture()), "report": json.loads(env_check(request).as_json())}
    sys.stdout.write(json.dumps(facts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
