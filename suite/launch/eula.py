"""What a person who accepts NVIDIA's licence of Isaac Sim says to its image."""

from collections.abc import Mapping
from typing import Final

ACCEPTED: Final[Mapping[str, str]] = {"ACCEPT_EULA": "Y", "OMNI_KIT_ACCEPT_EULA": "YES"}
