"""The digest of the image that labscale runs in. Only the pod's manifest can say it: from inside nobody can see it."""

import re
from collections.abc import Mapping
from typing import Final

from suite.errors import UsageError

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
