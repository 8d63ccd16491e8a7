"""What every launcher of an image needs: Isaac Sim's licence, the image's digest, the worker and env_check inside."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.report import Report, read_report
from suite.errors import ContainerError, UsageError
from suite.files.cache import cache_root
from suite.install.worker import RunPython, Worker, asset_root_of, with_assets
from suite.schema.record import Assets

LICENCE_ACCEPTED: Final[Mapping[str, str]] = {"ACCEPT_EULA": "Y", "OMNI_KIT_ACCEPT_EULA": "YES"}
# Only the manifest of a pod can say the digest of its image: from inside nobody can see it.
DIGEST: Final = "LABSCALE_IMAGE_DIGEST"  # of the environment
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ImageOptions:
    """What a run in an image needs: folders, mounted under the paths that they have here, and the licence."""

    project_root: Path
    asset_root: Path | None = None
    cache_dir: Path | None = None  # for compiled kernels; kept between rounds
    accept_eula: bool = False  # of NVIDIA's Isaac Sim, by the person who runs it

    def folders(self, *writable: Path) -> dict[str, str]:
        """Return the folders with ``ro`` or ``rw``, one inside another after it."""
        read_only = ((path, "ro") for path in (self.project_root, self.asset_root) if path)
        others = ((path, "rw") for path in (self.cache_dir, *writable) if path)
        ordered = sorted((*read_only, *others), key=lambda folder: len(folder[0].parts))
        return {str(path): mode for path, mode in ordered}


def require_licence(*, stack: str | None, accepted: bool) -> None:
    """Raise ContainerError if the image of ``stack`` has Isaac Sim and the user has not accepted NVIDIA's licence."""
    if stack == "isaacsim" and not accepted:
        raise ContainerError(
            "Isaac Sim runs under NVIDIA's licence, which only you can accept: read it at "
            "https://docs.isaacsim.omniverse.nvidia.com, then add --accept-eula."
        )


def digest_variables(image: str) -> dict[str, str]:
    """The variable that tells a container its digest; none if ``image`` has only a tag, which may move."""
    digest = image.partition("@")[2]
    return {DIGEST: digest} if _DIGEST.fullmatch(digest) else {}


def image_digest_of(environ: Mapping[str, str]) -> str | None:
    """The digest of the image, as the container's environment gives it; None if it gives none.

    Raises UsageError if it is not a digest.
    """
    digest = environ.get(DIGEST)
    if digest and not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{DIGEST} is {digest!r}, allowed is sha256: and 64 digits of 0-9 and a-f. Correct or unset it."
        )
    return digest or None


def provision_in_image(
    python: Path,
    pins_sha256: str | None,
    *,
    assets: Assets,
    run: RunPython,
    on_message: Callable[[str], None],
) -> Worker:
    """Return the worker, ready to run, with its offline assets and a cache for compiled kernels.

    ``run`` runs ``python`` in the image, with access to the cache. ``pins_sha256`` is None if labscale did not install
    the worker, as in Isaac Sim's own image.

    Raises:
        WorkerEnvironmentError: the assets cannot be built.
    """
    cache = cache_root()
    cache.mkdir(parents=True, exist_ok=True)
    key = (pins_sha256 or "isaacsim")[:12]
    worker = Worker(
        python=python,
        pins_sha256=pins_sha256,
        asset_root=asset_root_of(assets, key),
        asset_sha256=None,
        cache_dir=cache / f"kernels-{key}-image",  # compiled against the image's own libraries
    )
    return with_assets(worker, assets, on_message, run=run)


def report_of(done: subprocess.CompletedProcess[str], image: str, *, next_step: str) -> Report:
    """Return the report that env_check printed in an image. Raises ContainerError if it crashed, or printed none."""
    try:
        report = read_report(done.stdout)
        if done.returncode != report.exit_code:
            raise ValueError(f"its report says exit code {report.exit_code}")  # noqa: TRY301
    except ValueError as error:
        raise ContainerError(
            f"env_check did not run in the image {image}, exit code {done.returncode}: {error}\n"
            f"{(done.stderr or done.stdout).strip()[-2000:]}\n{next_step}"
        ) from error
    return report
