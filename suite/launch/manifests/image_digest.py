"""The digest of the image that labscale runs in. Only the pod's manifest can say it: from inside nobody can see it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event
from typing import Final

from suite.errors import UsageError
from suite.launch import Launcher, TurnsLauncher
from suite.schema.launch_result import LaunchResult
from suite.schema.record import Launch

DIGEST: Final = "LABSCALE_IMAGE_DIGEST"  # of the environment
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def variables(image: str) -> dict[str, str]:
    """The variable that tells a container its digest; none if ``image`` has only a tag, which may move."""
    digest = image.partition("@")[2]
    return {DIGEST: digest} if _DIGEST.fullmatch(digest) else {}


def digest_of(environ: Mapping[str, str]) -> str | None:
    """The digest of the image, as the container's environment gives it; None if it gives none.

    Raises:
        UsageError: it is not a digest.
    """
    digest = environ.get(DIGEST)
    if digest and not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{DIGEST} is {digest!r}, allowed is sha256: and 64 digits of 0-9 and a-f. Correct or unset it."
        )
    return digest or None


def run(
    launch: Launch,
    *,
    inner: Launcher,
    digest: str,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
) -> LaunchResult:
    """Run ``launch`` by ``inner`` and add the digest to the result; see ``suite.launch.Launcher``."""
    return replace(inner(launch, on_progress=on_progress, stop=stop), image_digest=digest)


def run_in_turns(
    launch: Launch,
    *,
    inner: TurnsLauncher,
    digest: str,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
    waits: Callable[[], bool] | None = None,
) -> LaunchResult:
    """The same for a run that waits for its turns; see ``suite.launch.TurnsLauncher``."""
    return replace(inner(launch, on_progress=on_progress, stop=stop, waits=waits), image_digest=digest)
