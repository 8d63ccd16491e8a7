"""What an image and another node are asked is what this command line would have been asked."""

from pathlib import Path

import pytest

from suite.__main__ import parse
from suite.commands.env_check import request_of
from suite.env_check.request import Request

EVERYTHING = Request(
    stack="isaacsim", device="cuda", require=("nccl", "vulkan"), worker_python=Path("/opt/isaac sim/python.sh")
)


def test_arguments() -> None:
    assert EVERYTHING.arguments() == (
        "-m", "suite", "env_check", "--json", "--stack", "isaacsim", "--device", "cuda", "--require", "nccl,vulkan",
        "--worker-python", "/opt/isaac sim/python.sh",
    )  # fmt: skip
    assert Request().arguments() == ("-m", "suite", "env_check", "--json", "--stack", "kitless")


WITH_PACKAGES = Request(worker_packages=("../my extension", "my-robots>=1,<2"))


@pytest.mark.parametrize("request_", [Request(), EVERYTHING, WITH_PACKAGES])
def test_the_command_line_reads_them_as_the_same_request(request_: Request) -> None:
    assert request_of(parse(list(request_.arguments()[2:]))) == request_


def test_only_isaac_sim_is_told_where_the_python_of_the_image_is() -> None:
    inside = Path("/opt/labscale/bin/worker-python")
    assert Request(stack="isaacsim", device="cpu").inside_image(inside).worker_python == inside
    assert Request(stack="kitless", worker_python=Path("/of/this/machine")).inside_image(inside) == Request()
