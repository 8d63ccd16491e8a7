"""Files for a cluster with a control plane of its own, in place of a plan."""

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

from suite.options.command_line import any_text
from suite.options.types import volume_claim

RenderFor = Literal["kubernetes", "osmo"]


@dataclass(frozen=True, kw_only=True)
class Manifests:
    render: RenderFor | None = None
    volume_claim: str = "labscale"  # of results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--render", choices=get_args(RenderFor), help="write files for this into --out, start nothing")
    parser.add_argument(
        "--image", type=any_text, metavar="NAME", help="with --render, as the cluster's registry has it"
    )
    parser.add_argument(
        "--volume-claim",
        type=volume_claim,
        default=Manifests.volume_claim,
        metavar="NAME",
        help=f"with --render kubernetes: results (default: {Manifests.volume_claim})",
    )
