"""A bundle carries other versions of packages, and its host runs the cases that ask for them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from suite.__main__ import main, parse
from suite.commands import packing
from suite.errors import BundleError, UsageError, WorkerEnvironmentError
from suite.install import worker_packages
from suite.install.bundle_contents import VERSIONS_VARIABLE, bundled_python, install_sets, require_device
from suite.install.damage import changes
from suite.install.worker_packages import digest_of
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.stand_ins.small_bundles import FILES, make, run_installer
from tests.fixtures.stand_ins.synthetic_wheels import use_wheels, write_wheel

OLDER = ("newton==1.6",)  # a matrix may write it short; 1.6.0 is what is installed


@pytest.fixture
def python(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Python of a copy of the worker with an older newton, installed by uv for real."""
    write_wheel(tmp_path / "wheels", "newton", "1.6.0", files=FILES["newton"])
    use_wheels(monkeypatch, tmp_path)
    monkeypatch.setattr(worker_packages, "IMPORTED", ("newton",))
    return install_sets(made / "worker/bin/python", [OLDER], on_message=lambda _: None)[OLDER]


def test_versions_are_packed_installed_and_come_before_the_workers(
    made: Path, tmp_path: Path, target: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make(made, tmp_path / "plain")
    index = make(made, tmp_path / "out", versions={OLDER: python})
    assert (plain["versions"], index["versions"]) == ([], [{"digest": digest_of(OLDER), "packages": [*OLDER]}])
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert (done.returncode, done.stderr) == (0, "")
    folder = tmp_path / "in/versions" / digest_of(OLDER)
    added = [path for path in folder.rglob("*") if path.is_file() and path != folder / "bin/python"]
    assert index["unpacked_bytes"] - plain["unpacked_bytes"] == sum(path.stat().st_size for path in added)
    top = {path.name for path in folder.iterdir()}
    assert top == {"bin", "complete.json", "newton", "newton-1.6.0.dist-info"}
    assert not (folder / "newton/tests").exists()
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path / "in/versions"))
    assert bundled_python(OLDER) == folder / "bin/python"
    ask = "import newton, isaaclab, os, sys; print(newton.VERSION, isaaclab.VERSION, sys.executable, os.getpid())"
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "in/site")}
    with subprocess.Popen([folder / "bin/python", "-c", ask], env=environ, stdout=subprocess.PIPE, text=True) as asked:
        output, _ = asked.communicate()
    assert output == f"1.6.0 3.0.0 {target} {asked.pid}\n"
    (tmp_path / "in/labscale/suite/__main__.py").write_text(f"import os; print(os.environ['{VERSIONS_VARIABLE}'])")
    started = subprocess.run([tmp_path / "in/labscale.sh", "plan"], capture_output=True, text=True, check=True)
    assert started.stdout == f"{tmp_path / 'in/versions'}\n"


def test_versions_that_are_not_those_of_the_index_are_not_installed(
    made: Path, tmp_path: Path, target: Path, python: Path
) -> None:
    index = make(made, tmp_path / "out", versions={OLDER: python})
    (listed,) = index["versions"]
    for wrong, message in (
        ({**listed, "packages": ["newton==9.0"]}, "newton==9.0, .* 1.6.0"),
        ({**listed, "digest": "none"}, "newton==1.6"),
    ):
        (tmp_path / "out/bundle.json").write_text(json.dumps({**index, "versions": [wrong]}))
        done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
        assert done.returncode == BundleError.exit_code
        assert re.search(message, done.stderr)
        assert str(tmp_path / "in") not in done.stderr  # nothing to run is named: all of it is deleted
        assert list((tmp_path / "in").iterdir()) == []


def test_a_set_that_the_bundle_lacks_is_said_with_those_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bundled_python(OLDER) is None
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path))
    with pytest.raises(WorkerEnvironmentError, match=r"newton==1\.6"):
        bundled_python(OLDER)
    (tmp_path / "1").mkdir()
    (tmp_path / "1/complete.json").write_text('{"packages": ["a==1", "b==2"], "set_aside": []}')
    with pytest.raises(WorkerEnvironmentError, match=r"a==1, b==2 .*--matrix NAME"):
        bundled_python(OLDER)


@pytest.mark.parametrize(("libraries", "sets"), [(("torchrl", "rsl_rl", "skrl"), [OLDER]), (("torchrl",), [])])
def test_a_matrix_names_its_sets_once_and_without_cases_of_other_pins(
    tmp_path: Path, libraries: tuple[str, ...], sets: list[tuple[str, ...]]
) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(matrix_of(cartpole(*libraries), f'versions = {{ older = ["{OLDER[0]}"] }}\n'))
    assert packing.versions_of(str(path), "cpu") == sets


def test_a_python_that_is_no_environment_is_not_copied(tmp_path: Path) -> None:
    python = tmp_path / "usr/bin/python"
    with pytest.raises(BundleError, match=r"newton==1\.6.*--worker-python"):
        install_sets(python, [OLDER], on_message=pytest.fail)
    assert install_sets(python, [], on_message=pytest.fail) == {}


def test_the_python_of_a_bundle_is_the_worker_and_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(["bench"]).worker_python is None
    assert parse(["bench", "--worker-python", "/other/python"]).worker_python == Path("/other/python")
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path))
    for words in ([], ["--worker-python", sys.executable]):
        assert parse(["bench", *words]).worker_python == Path(sys.executable)
    for command in ("bench", "plan", "env_check"):
        assert main([command, "--worker-python", "/other/python"]) == UsageError.exit_code
        assert "/other/python" in capsys.readouterr().err


def test_what_a_bundle_leaves_out_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "warp_lang-1.0.dist-info/RECORD"
    record.parent.mkdir()
    names = ("../../../bin/warp", "warp/tests/a.py", "warp/bin/warp-clang.so", "warp/gone.py")
    record.write_text("".join(f"{name},sha256=x,1\n" for name in names))
    assert changes([tmp_path]) == ("warp-lang: ../../../bin/warp is missing and 3 more",)
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path / "versions"))
    assert changes([tmp_path]) == ("warp-lang: warp/gone.py is missing",)


def test_a_bundle_for_gpus_refuses_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_device("cpu")  # from no bundle
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path / "versions"))
    require_device("cpu")  # the host has its own Warp
    compilers = tmp_path / "site/warp/bin"
    compilers.mkdir(parents=True)
    require_device("cuda")
    with pytest.raises(WorkerEnvironmentError, match=r"warp-clang\.so.* --device cpu"):
        require_device("cpu")
    (compilers / "warp-clang.so").touch()
    require_device("cpu")
