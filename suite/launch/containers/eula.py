"""What a person who accepts NVIDIA's licence of Isaac Sim says to its image, and the question before it is used."""

from collections.abc import Mapping
from typing import Final

from suite.errors import ContainerError

ACCEPTED: Final[Mapping[str, str]] = {"ACCEPT_EULA": "Y", "OMNI_KIT_ACCEPT_EULA": "YES"}


def require(*, stack: str | None, accepted: bool) -> None:
    """Raises ContainerError where the image of ``stack`` has Isaac Sim, whose licence nobody accepts for the user."""
    if stack == "isaacsim" and not accepted:
        raise ContainerError(
            "Isaac Sim runs under NVIDIA's licence, which only you can accept: read it at "
            "https://docs.isaacsim.omniverse.nvidia.com, then add --accept-eula."
        )
