import re
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from suite.errors import WorkerEnvironmentError
from suite.install import pins
from tests.fixtures.stand_ins.synthetic_wheels import use_wheels, write_index, write_wheel

PROJECT = Path(__file__).parents[3]


def versions(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([^#\s=]+)==(\S+)", path.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("name", [*pins.OF_WORKERS, *pins.OF_SUITE])
def test_committed_pins_hold_nothing_of_the_machine_they_were_made_on(name: str) -> None:
    path = PROJECT / pins.PINS_DIR / f"{name}.txt"
    text = path.read_text()
    pins.check_portable(text, name=name)
    assert not re.search(r"://|index-url|find-links| @ |\.whl|/home|/root|/opt|/tmp|localhost", text)
    assert len(versions(path)) > 5
    assert "Made by `nox -s pins`" in text


def test_suite_environments_agree_with_each_other() -> None:
    lint = versions(PROJECT / "containers/pins/lint.txt")
    for name in pins.OF_SUITE:
        assert versions(PROJECT / f"containers/pins/{name}.txt").items() <= lint.items()
    assert versions(PROJECT / "containers/pins/torchrl.txt")["ray"] == lint["ray"]  # that of the launcher


@pytest.mark.parametrize(
    "line",
    [
        "--find-links /opt/wheels",
        "--index-url https://user:secret@mirror.example/simple",
        "torch @ file:///opt/wheels/torch.whl",
        "torch==2.11.0",  # no hash follows
        "torch>=2.11.0 \\",
        "torch==2.11.0+cpu \\",
        "    --hash=md5:0123456789abcdef0123456789abcdef",
        "-e .",
    ],
)
def test_lines_that_would_not_install_elsewhere_are_refused(line: str) -> None:
    good = "# header\nnumpy==2.5.5 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    pins.check_portable(good, name="good")
    with pytest.raises(WorkerEnvironmentError, match="line 4"):
        pins.check_portable(good + line + "\n", name="bad")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose every pin resolves to `tool`, from an index with version 1.0; a local folder has 9.0."""
    project = tmp_path / "project"
    folder = project / pins.PINS_DIR
    folder.mkdir(parents=True)
    (folder / "worker.in").write_text("tool\n")
    for name in pins.OF_WORKERS[1:]:
        (folder / f"{name}.in").write_text("extra\n")
    groups = "".join(f'{name} = ["tool"]\n' for name in pins.OF_SUITE)
    (project / "pyproject.toml").write_text(
        f'[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.12"\n[dependency-groups]\n{groups}'
    )
    wheels = [write_wheel(tmp_path / "wheels", "tool", "1.0"), write_wheel(tmp_path / "wheels", "extra", "1.0")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", write_index(tmp_path / "index", wheels))
    write_wheel(tmp_path / "local", "tool", "9.0")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "local"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return project


def test_refresh_leaves_no_trace_of_the_users_index_and_keeps_versions_unless_told_to_upgrade(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = pins.refresh(project)
    assert [path.stem for path in written] == [*pins.OF_WORKERS, *pins.OF_SUITE]
    for path in written:
        assert versions(path)["tool"] == "1.0"
        assert str(tmp_path) not in path.read_text()
    assert versions(project / "containers/pins/ovphysx.txt") == {"extra": "1.0", "tool": "1.0"}
    names = (("tool", "1.0"), ("tool", "2.0"), ("extra", "1.0"))
    newer = [write_wheel(tmp_path / "newer", name, version) for name, version in names]
    monkeypatch.setenv("UV_DEFAULT_INDEX", write_index(tmp_path / "newer-index", newer))
    for upgrade, version in ((False, "1.0"), (True, "2.0")):
        pins.refresh(project, upgrade=upgrade)
        assert versions(project / "containers/pins/suite.txt")["tool"] == version


def test_refresh_changes_no_file_when_one_cannot_be_resolved(project: Path) -> None:
    written = pins.refresh(project)
    before = [path.read_bytes() for path in written]
    (project / pins.PINS_DIR / "worker.in").write_text("tool==1.0\n")
    (project / pins.PINS_DIR / "ovphysx.in").write_text("extra==7.0\n")
    with pytest.raises(WorkerEnvironmentError, match=r"ovphysx\.txt(.|\n)*extra==7\.0"):
        pins.refresh(project)
    assert [path.read_bytes() for path in written] == before


# ---- releases of a package, with uv for real and wheels of a few bytes ----


@pytest.fixture
def _index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("0.9.0", "1.0.0", "1.9.0", "1.10.0", "1.11.0rc1", "2.0.0"):
        write_wheel(tmp_path / "wheels", "newton", version, requires=["solver"])  # which is not there, nor asked for
    use_wheels(monkeypatch, tmp_path)


@pytest.mark.usefixtures("_index")
def test_releases_are_in_order_and_without_those_before_a_release() -> None:
    python = Path(sys.executable)
    for within, expected in (
        ("==1.*", ["1.0.0", "1.9.0", "1.10.0"]),
        ("", ["0.9.0", "1.0.0", "1.9.0", "1.10.0", "2.0.0"]),
    ):
        assert pins.releases("newton", SpecifierSet(within), python) == expected
    with pytest.raises(WorkerEnvironmentError, match=r"no release newton==7\.\*\. .*--bisect newton==1\.6\.0,1\.6\.1"):
        pins.releases("newton", SpecifierSet("==7.*"), python)


@pytest.mark.usefixtures("_index")
def test_an_index_that_does_not_answer_is_no_end_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")  # where nothing listens
    with pytest.raises(WorkerEnvironmentError, match="newton"):
        pins.releases("newton", SpecifierSet("==1.*"), Path(sys.executable))
