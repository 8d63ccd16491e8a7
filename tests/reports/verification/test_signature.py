"""Versions that are signed with a real ssh-keygen, and signatures that are wrong."""

import subprocess
from pathlib import Path

import pytest

from reports.verification.first import Verified, verify
from reports.verification.hashes import NAMESPACE, SIGNERS, SUMS, write_hashes
from tests.fixtures.results.generated_results import full_results, write_results


@pytest.fixture
def version(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "2026.11"
    write_results(full_results()[:1], folder / "host")
    (folder / "report.toml").write_text('[[set]]\nfolder = "host"\n')
    write_hashes(folder / "host")
    write_hashes(folder)
    return folder


def make_key(folder: Path, name: str) -> Path:
    key = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key], check=True)
    return key


def sign(version: Path, key: Path, namespace: str = NAMESPACE) -> None:
    (version / f"{SUMS}.sig").unlink(missing_ok=True)
    arguments = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, str(version / SUMS)]
    subprocess.run(arguments, check=True, capture_output=True)


def allow(version: Path, who: str, key: Path) -> None:
    (version.parent / SIGNERS).write_text(f"{who} {key.with_suffix('.pub').read_text()}")


def about_signature(verified: Verified) -> list[str]:
    return [finding.got for finding in verified.findings if finding.what == "the signature"]


def test_a_version_may_be_unsigned(version: Path) -> None:
    verified = verify(version.parent)
    assert verified.signatures == ("2026.11: not signed.",)
    assert about_signature(verified) == []


def test_verify_says_who_signed(version: Path, tmp_path: Path) -> None:
    key = make_key(tmp_path, "key")
    allow(version, "someone@example.org", key)
    sign(version, key)
    verified = verify(version.parent)
    assert verified.signatures == ("2026.11: signed by someone@example.org.",)
    assert about_signature(verified) == []
    assert verify(version).signatures == (".: signed by someone@example.org.",)


def test_a_wrong_signature_is_an_error(version: Path, tmp_path: Path) -> None:
    key, other = make_key(tmp_path, "key"), make_key(tmp_path, "other")
    allow(version, "someone@example.org", key)
    sign(version, other)
    assert about_signature(verify(version.parent)) == ["of a key that is not known"]
    sign(version, key, namespace="file")
    assert about_signature(verify(version.parent)) == ["of other hashes, another namespace or an expired key"]
    sign(version, key)
    (version / "claim.txt").write_text("A claim that nobody signed.\n")
    write_hashes(version)
    verified = verify(version.parent)
    assert verified.signatures == ("2026.11: the signature is wrong.",)
    assert about_signature(verified) == ["of other hashes, another namespace or an expired key"]


def test_a_signature_that_nobody_can_check_is_an_error(
    version: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(version, make_key(tmp_path, "key"))
    assert about_signature(verify(version.parent)) == [f"not checkable: {SIGNERS} is missing"]
    allow(version, "someone@example.org", tmp_path / "key")
    monkeypatch.setenv("PATH", str(tmp_path))
    (said,) = about_signature(verify(version.parent))
    assert said.startswith("not checked: ssh-keygen does not run here")
