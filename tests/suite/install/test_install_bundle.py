"""A bundle is checked and installed, with the installer that it carries."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.errors import BundleError
from suite.install import bundle, install_bundle
from tests.fixtures.stand_ins.small_bundles import VERSIONS, make, run_installer, worker_wheels
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel


def test_bundle_is_packed_installed_and_started(made: Path, tmp_path: Path, target: Path) -> None:
    index = make(made, tmp_path / "out")
    assert {item["name"] for item in index["distributions"]} == {*VERSIONS, "packaging"}
    assert index["left_out"].keys() == {"open3d"}
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "in/site"
    assert (site / "newton/examples/ant.usda").read_text() == "ant"
    assert not (site / "newton/tests").exists()
    assert not list(site.rglob("__pycache__"))
    assert not list(site.rglob("golden_images"))
    assert (tmp_path / "in/assets/Isaac/ant.usd").read_bytes() == (made / "assets/Isaac/ant.usd").read_bytes()
    assert not (tmp_path / "in/labscale/untracked").exists()
    assert not (tmp_path / "in/.unpacking").exists()
    started = subprocess.run(
        [tmp_path / "in/labscale.sh", "bench", "--x", "a b"], capture_output=True, text=True, check=True
    )
    assert started.stdout == f"{['bench', '--worker-python', str(target), '--x', 'a b']} {{}}\n"
    again = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert again.returncode == BundleError.exit_code
    assert "already has site" in again.stderr


def test_parts_may_lie_in_several_folders(cut: Path, made: Path) -> None:
    (cut / "more").mkdir()
    (cut / "part-001").rename(cut / "more/part-001")
    index = install_bundle.read_bundle([cut])
    found = install_bundle.find_parts(index, [cut, cut / "more"])
    install_bundle.unpack(found, cut / "in")
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
    assert "part-000 is missing (200 bytes)" in done.stderr
    assert "part-001 is broken: 150 of 200 bytes" in done.stderr
    assert "part-002 is broken: its checksum differs" in done.stderr
    assert not (tmp_path / "in").exists()


def test_python_of_another_version_is_refused(made: Path, tmp_path: Path) -> None:
    make(made, tmp_path / "out")
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho Python 3.10.12\n")
    old.chmod(0o755)
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", old)
    assert done.returncode == BundleError.exit_code
    assert "is Python 3.10.12, the bundle was made for Python 3.12" in done.stderr
    assert not (tmp_path / "in").exists()


def test_too_little_disk_is_said_before_unpacking(made: Path, tmp_path: Path, target: Path) -> None:
    index = make(made, tmp_path / "out")
    (tmp_path / "out/bundle.json").write_text(json.dumps({**index, "unpacked_bytes": 10**18}))
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert done.returncode == BundleError.exit_code
    assert "needed are 1000000000000 MB" in done.stderr


def test_target_that_is_not_as_said_is_told_what_it_lacks(made: Path, tmp_path: Path) -> None:
    make(made, tmp_path / "out", target={"torch": "2.11.0", "numpy": None, "mujoco": None})
    old_numpy, old_torch = (
        write_wheel(tmp_path / "old", "numpy", "1.26.4"),
        write_wheel(tmp_path / "old", "torch", "2.10.0"),
    )
    python = make_environment(tmp_path / "target", [old_numpy, old_torch])
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", python)
    assert done.returncode == BundleError.exit_code
    assert "torch on this host is 2.10.0, declared is ==2.11.0" in done.stderr
    assert "mujoco is missing on this host" in done.stderr
    assert "numpy" not in done.stderr  # its version was not promised
    assert list((tmp_path / "in").iterdir()) == []
    good = worker_wheels(tmp_path / "wheels", ["torch", "mujoco"])
    done = run_installer(
        tmp_path / "out", "--into", tmp_path / "in", "--python", make_environment(tmp_path / "good", [old_numpy, *good])
    )
    assert done.returncode == 0
    assert "warning: numpy on this host is 1.26.4, declared is >=2" in done.stderr


def test_members_that_would_leave_the_folder_are_refused(made: Path, tmp_path: Path) -> None:
    bundle._pack([("../outside", made / "assets/manifest.json")], out_dir=tmp_path, part_bytes=10_000)
    with pytest.raises(install_bundle.InstallError, match="outside"):
        install_bundle.unpack([tmp_path / "part-000"], tmp_path / "in")
    assert not (tmp_path / "outside").exists()


def test_relative_paths_and_a_link_to_the_launcher_work(made: Path, tmp_path: Path, target: Path) -> None:
    make(made, tmp_path / "out")
    here = tmp_path / "here"
    here.mkdir()
    python = os.path.relpath(target, here)
    done = run_installer(tmp_path / "out", "--into", "../in", "--python", python, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(tmp_path / "in/labscale.sh") in done.stdout
    (here / "labscale").symlink_to("../in/labscale.sh")
    started = subprocess.run([here / "labscale", "verify"], cwd="/", capture_output=True, text=True, check=False)
    assert (started.stdout, started.stderr) == ("['verify'] {}\n", "")


def test_a_full_disk_leaves_nothing_and_the_same_command_goes_on(made: Path, tmp_path: Path, target: Path) -> None:
    make(made, tmp_path / "out")
    arguments = ("--into", tmp_path / "in", "--python", target)
    full = ["bash", "-c", 'ulimit -f 4; exec "$@"', "full"]  # the system refuses to write as where a disk is full
    done = run_installer(tmp_path / "out", *arguments, below=full)
    assert done.returncode == BundleError.exit_code
    assert re.fullmatch(
        r"install\.py: Cannot install into .*/in: .*File too large.* run the same command again\.\n", done.stderr
    )
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


def test_a_place_that_is_no_folder_is_said(made: Path, tmp_path: Path, target: Path) -> None:
    make(made, tmp_path / "out")
    done = run_installer(tmp_path / "out", "--into", "/dev/null", "--python", target)
    assert done.returncode == BundleError.exit_code
    assert done.stderr.startswith("install.py: Cannot install into /dev/null: ")
    assert "another folder with --into" in done.stderr


def test_a_damaged_index_is_said(made: Path, tmp_path: Path) -> None:
    index = make(made, tmp_path)
    text = (tmp_path / "bundle.json").read_text()
    no_hash = {**index, "parts": [{**index["parts"][0], "sha256": None}]}
    no_digest = {**index, "versions": [{"packages": []}]}
    wrong = (json.dumps(no_hash), json.dumps(no_digest))
    for damaged in (text[:99], "", "[" * 99_999, "[]", "{}", '{"format": 1}', *wrong, "\udcff"):
        (tmp_path / "bundle.json").write_text(damaged, errors="surrogateescape")
        with pytest.raises(install_bundle.InstallError, match=r"bundle\.json is damaged.* Copy it here again\."):
            install_bundle.read_bundle([tmp_path])
    (tmp_path / "bundle.json").write_text('{"format": 2}')
    with pytest.raises(install_bundle.InstallError, match=r"has format 2, .* use the bundle"):
        install_bundle.read_bundle([tmp_path])
    (tmp_path / "bundle.json").write_text(json.dumps({**index, "parts": []}))
    done = run_installer(tmp_path, "--into", tmp_path / "in")
    assert (done.returncode, list((tmp_path / "in").iterdir())) == (BundleError.exit_code, [])
    assert "bundle.json belongs to other parts" in done.stderr


def test_links_among_members_are_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("site/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(tmp_path / "part-000", "w:xz") as tar:
        tar.addfile(link)
    with pytest.raises(install_bundle.InstallError, match="'site/link', which is no file"):
        install_bundle.unpack([tmp_path / "part-000"], tmp_path / "in")


def test_installer_starts_with_an_old_python_and_nothing_installed() -> None:
    tree = ast.parse(bundle.INSTALLER.read_text(), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    assert BundleError.exit_code == install_bundle.EXIT_CODE
