"""NVIDIA's licence of Isaac Sim: the variables that accept it, and the check that the user did."""

from collections.abc import Mapping
from typing import Final

from suite.errors import ContainerError

ACCEPTED: Final[Mapping[str, str]] = {"ACCEPT_EULA": "Y", "OMNI_KIT_ACCEPT_EULA": "YES"}


def require(*, stack: str | None, accepted: bool) -> None:
    """Raise ContainerError if the image of ``stack`` has Isaac Sim and the user has not accepted its licence."""
    if stack == "isaacsim" and not accepted:
        raise ContainerError(
            "Isaac Sim runs under NVIDIA's licence, which only you can accept: read it at "
            "https://docs.isaacsim.omniverse.nvidia.com, then add --accept-eula."
        )
