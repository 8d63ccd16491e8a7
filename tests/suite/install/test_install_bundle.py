"""A bundle is checked and installed, with the installer that it carries."""

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.errors import BundleError
from suite.install import bundle, install_bundle
from tests.fixtures.stand_ins.denied_folders import deny
from tests.fixtures.stand_ins.small_bundles import VERSIONS, make, run_installer, worker_wheels
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel


def test_bundle_is_packed_installed_and_started(made: Path, tmp_path: Path, target: Path) -> None:
    """Paths may be relative, and the launcher may be started through a link."""
    index = make(made, tmp_path / "out")
    assert {item["name"] for item in index["distributions"]} == {*VERSIONS, "packaging"}
    assert index["left_out"].keys() == {"open3d"}
    here = tmp_path / "here"
    here.mkdir()
    arguments = ("--into", "../in", "--python", os.path.relpath(target, here))
    done = run_installer(tmp_path / "out", *arguments, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(tmp_path / "in/labscale.sh") in done.stdout
    site = tmp_path / "in/site"
    assert (site / "newton/examples/ant.usda").read_text() == "ant"
    assert not (site / "newton/tests").exists()
    assert not list(site.rglob("__pycache__"))
    assert not list(site.rglob("golden_images"))
    assert (tmp_path / "in/assets/Isaac/ant.usd").read_bytes() == (made / "assets/Isaac/ant.usd").read_bytes()
    assert not (tmp_path / "in/labscale/untracked").exists()
    assert not (tmp_path / "in/.unpacking").exists()
    (tmp_path / "in/labscale/reports").symlink_to("suite")
    (here / "labscale").symlink_to("../in/labscale.sh")
    for name, package in {"bench": "suite", "accept": "suite", "report": "reports", "verify": "reports"}.items():
        command: list[str | Path] = [here / "labscale", name, "--x", "a b"]
        started = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
        assert (started.stdout, started.stderr) == (f"{package} {[name, '--x', 'a b']} {{}}\n", "")
    again = run_installer(tmp_path / "out", *arguments, cwd=here)
    assert (again.returncode, "already has site" in again.stderr) == (BundleError.exit_code, True)


def test_parts_may_lie_in_several_folders(cut: Path, made: Path) -> None:
    (cut / "more").mkdir()
    (cut / "part-001").rename(cut / "more/part-001")
    parts = install_bundle.find_parts(install_bundle.read_bundle([cut]), [cut, cut / "more"])
    install_bundle.unpack(parts, cut / "in")
    assert (cut / "in/assets/a").read_bytes() == (made / "assets/Isaac/ant.usd").read_bytes()


def test_missing_cut_and_changed_parts_are_all_named(cut: Path, tmp_path: Path, target: Path) -> None:
    (cut / "part-000").unlink()
    torn = cut / "part-001"
    torn.write_bytes(torn.read_bytes()[:150])
    changed = cut / "part-002"
    content = changed.read_bytes()
    changed.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    done = run_installer(cut, "--into", tmp_path / "in", "--python", target)
    assert done.returncode == BundleError.exit_code
    assert all(part in done.stderr for part in ("part-000", "part-001", "part-002"))
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize(
    ("change", "into", "message"),
    [
        ({"python": "3.10"}, "in", "the bundle was made for Python 3.10"),
        ({"unpacked_bytes": 10**18}, "in", "1000000000000 MB"),
        ({"format": 2}, "in", "bundle.json has format 2"),
        ({"parts": []}, "in", "bundle.json belongs to other parts"),
        ({}, "/dev/null", "Cannot install into /dev/null"),
        ({}, "a:b", "has a ':'"),
    ],
)
def test_what_cannot_be_installed_is_said_and_leaves_nothing(
    made: Path, tmp_path: Path, target: Path, change: dict[str, Any], into: str, message: str
) -> None:
    index = make(made, tmp_path / "out")
    (tmp_path / "out/bundle.json").write_text(json.dumps({**index, **change}))
    done = run_installer(tmp_path / "out", "--into", tmp_path / into, "--python", target)
    assert (done.returncode, message in done.stderr) == (BundleError.exit_code, True)
    assert list((tmp_path / "in").glob("*")) == []


def test_target_that_is_not_as_said_is_told_what_it_lacks(made: Path, tmp_path: Path) -> None:
    make(made, tmp_path / "out", target={"torch": "2.11.0", "numpy": None, "mujoco": None})
    old_numpy, old_torch = (
        write_wheel(tmp_path / "old", *package) for package in (("numpy", "1.26.4"), ("torch", "2.10.0"))
    )
    python = make_environment(tmp_path / "target", [old_numpy, old_torch])
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", python)
    assert done.returncode == BundleError.exit_code
    named = [name for name in ("torch on this host is 2.10.0", "mujoco", "numpy") if name in done.stderr]
    assert named == ["torch on this host is 2.10.0", "mujoco"]  # the version of numpy was not promised
    assert list((tmp_path / "in").iterdir()) == []
    good = worker_wheels(tmp_path / "wheels", ["torch", "mujoco"])
    done = run_installer(
        tmp_path / "out", "--into", tmp_path / "in", "--python", make_environment(tmp_path / "good", [old_numpy, *good])
    )
    assert done.returncode == 0
    assert "numpy on this host is 1.26.4" in done.stderr


def test_a_full_disk_leaves_nothing_and_the_same_command_goes_on(made: Path, tmp_path: Path, target: Path) -> None:
    make(made, tmp_path / "out")
    arguments = ("--into", tmp_path / "in", "--python", target)
    full = ["bash", "-c", 'ulimit -f 4; exec "$@"', "full"]  # the system refuses to write as where a disk is full
    done = run_installer(tmp_path / "out", *arguments, below=full)
    assert done.returncode == BundleError.exit_code
    assert "File too large" in done.stderr
    assert list((tmp_path / "in").iterdir()) == []
    assert run_installer(tmp_path / "out", *arguments).returncode == 0


def test_what_a_killed_installation_left_counts_as_free(
    made: Path, tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make(made, tmp_path / "out")
    left = tmp_path / "in/.unpacking/site/left"
    left.parent.mkdir(parents=True)
    left.touch()

    def disk_usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=index["unpacked_bytes"] - left.exists())

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    install_bundle.install(tmp_path / "in", python=str(target), folders=[tmp_path / "out"])
    assert not left.exists()


def test_an_interrupt_while_all_is_moved_leaves_nothing(
    made: Path, tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(made, tmp_path / "out")
    replace = Path.replace

    def interrupted(path: Path, to: Path) -> Path:
        if to == tmp_path / "in/assets":
            raise KeyboardInterrupt
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        install_bundle.install(tmp_path / "in", python=str(target), folders=[tmp_path / "out"])
    assert list((tmp_path / "in").iterdir()) == []
    assert run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target).returncode == 0


PART: dict[str, Any] = {"name": "part-000", "bytes": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    "wrong",
    [
        "", "[" * 99_999, "[]", "{}", '{"format": 1}', "\udcff", " " * 2**24 + "{}", '{"format": 1, "created_utc',
        {"format": True}, {"format": "\x1b[2J"}, {"python": "3"}, {"python": 3.12}, {"unpacked_bytes": -5},
        {"unpacked_bytes": 1.5}, {"unpacked_bytes": True}, {"unpacked_bytes": 10**400}, {"unpacked_bytes": None},
        {"parts": [{**PART, "sha256": None}]}, {"parts": [{**PART, "bytes": -1}]}, {"parts": [PART, PART]},
        {"parts": [{**PART, "name": "/dev/zero"}]}, {"parts": [{**PART, "name": "../part-000"}]}, {"parts": PART},
        {"distributions": [{"name": "torch\x1b[2J", "version": "1"}]}, {"versions": [{"packages": []}]},
        {"versions": [{"digest": "../site", "packages": ["newton==1.6.0"]}]},
        *({"versions": [{"digest": "a", "packages": [package]}]} for package in ("newton", "newton==x")),
        {"expected_on_target": [{"name": "torch", "specifier": "newest", "assumed": 1}]},
    ],
)  # fmt: skip
def test_an_index_that_labscale_did_not_write_is_refused(
    made: Path, tmp_path: Path, wrong: str | dict[str, Any]
) -> None:
    text = wrong if isinstance(wrong, str) else json.dumps({**make(made, tmp_path), **wrong})
    (tmp_path / "bundle.json").write_text(text, errors="surrogateescape")
    with pytest.raises(install_bundle.InstallError, match=r"bundle\.json is damaged: [ -~]*\. Copy it here again\.$"):
        install_bundle.read_bundle([tmp_path])


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


@pytest.mark.parametrize(
    ("members", "message"),
    [
        *(([member("site/a", mode=mode)], f"has mode {mode:o}") for mode in (0o4755, 0o2755, 0o1644, 0o666, 0o777, 0)),
        *(
            ([member(name)], "is no plain name below")
            for name in ("../a", "/site/a", "site/../../a", "other/a", "site", "labscale.sh", "site/\udcff", "site/\n")
        ),
        *(
            ([member("site/a", type=kind, linkname="/etc/passwd")], "is no file")
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"5")
        ),
        ([member("site/a"), member("site/a")], "it has twice"),
        ([member("site/a"), member("site/./a")], "it has twice"),
        ([member("site/a"), member("site/a/b")], "do not make an archive"),
        ([member("site/a" + "/a" * 1500)], "do not make an archive"),
        ([member("site/a", size=101)], "makes it larger than bundle.json says"),
    ],
)  # fmt: skip
def test_what_labscale_does_not_pack_is_refused(tmp_path: Path, members: list[tarfile.TarInfo], message: str) -> None:
    part = tmp_path / "part-000"
    with tarfile.open(part, "w:xz", format=tarfile.PAX_FORMAT) as tar:
        for packed in members:
            tar.addfile(packed, io.BytesIO(bytes(packed.size)))
    with pytest.raises(install_bundle.InstallError, match=message):
        install_bundle.unpack([part], tmp_path / "in", most_bytes=100)
    assert not (tmp_path / "a").exists()


def test_a_folder_of_parts_that_cannot_be_searched_is_said(
    cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(install_bundle.InstallError, match=f"{tmp_path}/gone .*: No such file"):
        install_bundle.read_bundle([cut, tmp_path / "gone"])
    (tmp_path / "more").mkdir()
    deny(monkeypatch, tmp_path / "more", may_enter=True)
    index = install_bundle.read_bundle([cut, tmp_path / "more"])
    deny(monkeypatch, tmp_path / "more")
    for look in (install_bundle.read_bundle, partial(install_bundle.find_parts, index)):
        with pytest.raises(install_bundle.InstallError, match=f"{tmp_path}/more .*: Permission denied"):
            look([cut, tmp_path / "more"])


def test_a_folder_whose_programs_may_not_be_run_is_said(made: Path, tmp_path: Path, target: Path) -> None:
    make(made, tmp_path / "out")
    into = tmp_path / "in"
    into.mkdir()
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o noexec labscale "$0" && exec "$@"', str(into)]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a folder in a namespace of its own")
    done = run_installer(tmp_path / "out", "--into", into, "--python", target, below=mounted)
    assert done.returncode == BundleError.exit_code
    assert str(into) in done.stderr


@pytest.mark.parametrize(
    "script", ["exit 3", "echo Python 3.12.1; test $1 = -V", "echo Python 3.12.1; test $1 = -V || echo {}"]
)
def test_a_program_that_is_no_python_is_said(made: Path, tmp_path: Path, script: str) -> None:
    make(made, tmp_path / "out")
    (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "python").chmod(0o755)
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", tmp_path / "python")
    assert done.returncode == BundleError.exit_code
    assert re.fullmatch(rf"install\.py: {tmp_path}/python .* with --python\.\n", done.stderr)


def test_installer_starts_with_an_old_python_and_nothing_installed() -> None:
    tree = ast.parse(bundle.INSTALLER.read_text(), feature_version=(3, 6))  # it says itself that it needs 3.9
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    code = f"import sys; sys.version_info = (3, 6, 8); exec(open({str(bundle.INSTALLER)!r}).read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == BundleError.exit_code == install_bundle.EXIT_CODE
    assert "3.9 or newer" in done.stderr
