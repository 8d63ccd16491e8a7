"""What a stack needs, and that an image and another node are asked what this command line would have been asked."""

from pathlib import Path
from typing import Final

import pytest

from suite.__main__ import parse
from suite.env_check.check import Check, Feature, Verdict
from suite.env_check.request import DECISIVE, Request, needs, unproved, weigh
from suite.options.declaration import read
from suite.schema.record import Device, Stack

EVERYTHING: Final = Request(
    stack="isaacsim", device="cuda", require=("nccl", "vulkan"), worker_python=Path("/opt/isaac sim/python.sh")
)


@pytest.mark.parametrize(
    "request_",
    [Request(), EVERYTHING, Request(worker_packages=("../my extension", "my-robots>=1,<2")), Request(everything=False)],
)
def test_the_command_line_reads_them_as_the_same_request(request_: Request) -> None:
    assert read(Request, parse(list(request_.arguments()[2:]))) == request_


def test_only_isaac_sim_is_told_where_the_python_of_the_image_is() -> None:
    inside = Path("/opt/labscale/bin/worker-python")
    assert Request(stack="isaacsim", device="cpu").inside_image(inside).worker_python == inside
    assert Request(stack="kitless", worker_python=Path("/of/this/machine")).inside_image(inside) == Request()


@pytest.mark.parametrize(
    ("stack", "device", "num_gpus", "require", "needed"),
    [
        ("kitless", "cpu", 0, (), {"host", "worker"}),
        ("kitless", "cuda", 1, (), {"host", "worker", "cuda", "cuda-graphs"}),
        ("kitless", "cuda", 2, (), {"host", "worker", "cuda", "cuda-graphs", "nccl"}),
        ("ovphysx", "cuda", 1, (), {"host", "worker", "cuda", "libgl"}),
        ("isaacsim", "cuda", 1, (), {"host", "worker", "cuda", "vulkan", "rt-cores", "libgl", "egl_loader"}),
        ("kitless", "cpu", 0, ("vulkan",), {"host", "worker", "vulkan", "egl_loader"}),
        *(  # what needs a GPU needs CUDA, too
            ("kitless", "cpu", 0, (feature,), {"host", "worker", "cuda", feature})
            for feature in ("cuda-graphs", "nccl", "rt-cores")
        ),
    ],
)
def test_what_a_stack_needs(
    stack: Stack, device: Device, num_gpus: int, require: tuple[Feature, ...], needed: set[str]
) -> None:
    assert needs(stack, device=device, num_gpus=num_gpus, require=require) == needed


def check(feature: Feature, verdict: Verdict, name: str = "some_check") -> Check:
    fault = "some_fault" if verdict in ("warning", "failure", "not_needed") else None
    return Check(
        name=name, feature=feature, verdict=verdict, found="", wanted="", fault=fault, repair=fault, evidence=None
    )


def test_a_fault_of_what_is_not_needed_is_no_failure() -> None:
    needed = needs("ovphysx", device="cuda", num_gpus=1)
    assert weigh(check("worker", "failure"), needed).verdict == "failure"
    assert weigh(check("egl", "failure", "libgl"), needed).verdict == "failure"
    assert weigh(check("egl", "failure", "egl_frame"), needed).verdict == "not_needed"


def test_a_needed_feature_whose_proof_could_not_be_made_is_unproved() -> None:
    needed = needs("kitless", device="cuda", num_gpus=2)
    missing = check("nccl", "not_checked", DECISIVE["nccl"])
    others = [check("nccl", "not_checked", "memlock"), check("egl", "not_checked", DECISIVE["egl"])]
    assert unproved([missing, *others], needed) == (missing,)
