"""Who signed a version: ``SHA256SUMS.sig`` by ``ssh-keygen -Y sign``.

    ssh-keygen -Y sign -f KEY -n labscale SHA256SUMS

``allowed_signers`` in the folder of the versions says whose keys are known, one a line: ``NAME KEYTYPE KEY``.
"""

import subprocess
from pathlib import Path
from typing import Final

from reports.verification.finding import Finding
from reports.verification.hashes import SIGNATURE, SUMS
from reports.verification.regular_file import read_bytes

NAMESPACE: Final = "labscale"
SIGNERS: Final = "allowed_signers"
_SIGN_AGAIN: Final = "Restore the files from git; whoever may sign can sign again with `ssh-keygen -Y sign`."


def check_signature(version: Path, *, root: Path) -> tuple[str, list[Finding]]:
    """Return a sentence that says who signed, and a finding if the signature is wrong or nobody known made it."""
    name = version.relative_to(root).as_posix()
    sums, signature, signers = version / SUMS, version / SIGNATURE, version.parent / SIGNERS
    if not signature.is_file():
        return f"{name}: not signed.", []
    where = signature.relative_to(root).as_posix()

    def refused(got: str) -> tuple[str, list[Finding]]:
        expected = f"by a key of {SIGNERS}, over {SUMS} as it is"
        finding = Finding(where=where, what="the signature", got=got, expected=expected, next_step=_SIGN_AGAIN)
        return f"{name}: the signature is wrong.", [finding]

    if not sums.is_file() or not signers.is_file():
        return refused(f"not checkable: {(signers if sums.is_file() else sums).name} is missing")
    arguments = ["-s", str(signature), "-f", str(signers), "-n", NAMESPACE]
    try:
        found = _ssh_keygen(["-Y", "find-principals", *arguments[:4]], b"")
        who = found.stdout.decode(errors="replace").split("\n")[0].strip()
        if found.returncode or not who:
            return refused("of a key that is not known")
        verified = _ssh_keygen(["-Y", "verify", "-I", who, *arguments], read_bytes(sums))
    except (OSError, subprocess.TimeoutExpired) as error:
        return refused(f"not checked: ssh-keygen does not run here ({error})")
    if verified.returncode:
        return refused("of other hashes, another namespace or an expired key")
    return f"{name}: signed by {who}.", []


def _ssh_keygen(arguments: list[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ssh-keygen", *arguments], input=content, capture_output=True, timeout=30, check=False)
