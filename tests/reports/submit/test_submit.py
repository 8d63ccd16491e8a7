"""The command ``submit``, from the folder of a campaign to a version that ``verify`` accepts."""

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from reports.__main__ import main as session
from reports.submit import command
from reports.submit.command import TEXT_FILE
from reports.submit.placing import put_in_place
from reports.submit.privacy import published
from reports.submit.source import read_source
from reports.verification.first import verify
from reports.verification.hashes import SIGNATURE
from suite.commands.store import GONE
from suite.errors import LabscaleError, NotFitToSubmit, ResultsDiffer, StoreError, UsageError
from suite.records.folders import RUN_LOG, intact_videos, video_path
from tests.fixtures.results.damaged_results import damage, machine, put
from tests.fixtures.results.films import store_film
from tests.fixtures.results.finished_campaign import CASE, write_campaign, write_raw
from tests.fixtures.results.forged_version import write_version

NAME: Final = "h100-80gb-hbm3x2-20261125-0351"
GOLDEN: Final = Path(__file__).parents[2] / "golden" / "submission.md"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    return write_campaign(tmp_path / "runs" / "first")


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "reports" / "results"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one version that has no fault, which a README shows."""
    repository = tmp_path_factory.mktemp("original")
    version = write_version(repository / "reports" / "results" / "2026.11", ["h200-x2-per-gpu"])
    assert verify(version.parent).findings == ()
    return repository


@pytest.fixture
def with_version(original: Path, into: Path) -> Path:
    """A folder of versions that has a copy of the original one."""
    shutil.copytree(original, into.parents[1], dirs_exist_ok=True)
    return into


def content(folder: Path) -> dict[str, bytes]:
    """Every file and folder below."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")
    }


def entries(version: Path) -> list[dict[str, Any]]:
    sets: list[dict[str, Any]] = tomllib.loads((version / "report.toml").read_text())["set"]
    return sets


def test_results_become_a_set_of_a_new_version(tmp_path: Path, into: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_campaign(tmp_path / "turns", "h200-turns")
    assert session("submit", [str(source), "--version", "2026.12", "--into", str(into)]) == 0
    (written,) = (into / "2026.12").glob("*/")
    assert written.name == "h200x1-20261125-2231"
    assert entries(into / "2026.12") == [{"folder": written.name, "title": "1 x H200, 16 vCPU, 25 Nov 2026"}]
    public = published(read_source(source).files)
    assert {name: text for name, text in content(written).items() if name != "SHA256SUMS" and text} == {
        path.relative_to(source).as_posix(): text for path, text in public.content.items()
    }
    verified = verify(into)
    assert (verified.findings, verified.rounds, verified.published_cases) == ((), 48, 4)
    assert [path.name for path in into.iterdir()] == ["2026.12"]
    output = capsys.readouterr().out
    assert f"Added {written}: 9 files, " in output
    assert {f"  {text}" for text in public.texts} <= set(output.splitlines())
    assert f"{public.replaced} texts had a word" in output
    assert "8 configurations, 48 runs." in output
    assert f"git add {into / '2026.12'} && git commit --file {source / TEXT_FILE}" in output
    assert (source / TEXT_FILE).read_text() in output


def test_the_run_log_and_videos_are_submitted_with_their_results(campaign: Path, into: Path) -> None:
    write_raw(campaign)
    case_id = CASE.removeprefix("cases/").removesuffix(".json")
    store_film(campaign, case_id)
    assert session("submit", [str(campaign), "--version", "2026.12", "--into", str(into)]) == 0
    (written,) = (into / "2026.12").glob("*/")
    assert (written / RUN_LOG).read_bytes() == (campaign / RUN_LOG).read_bytes()
    assert f"  {RUN_LOG}\n" in (written / "SHA256SUMS").read_text()
    assert list(intact_videos(written)) == [case_id]
    assert verify(into).findings == ()
    path = video_path(written, case_id)
    path.write_bytes(path.read_bytes()[:-1])
    assert {finding.where for finding in verify(into).findings} == {path.relative_to(into).as_posix()}


def test_the_text_is_as_it_was_looked_at(campaign: Path, into: Path) -> None:
    assert (
        session(
            "submit", [str(campaign), "--into", str(into), "--version", "2026.12", "--contributed-by", "Example Lab"]
        )
        == 0
    )
    assert (campaign / TEXT_FILE).read_text() == GOLDEN.read_text()


def test_what_a_lost_machine_never_ended_is_named_in_the_plan_and_the_rest_is_fit_to_submit(
    campaign: Path, into: Path
) -> None:
    plan = json.loads((campaign / "plan.json").read_text())
    plan["configurations"]["never"] = 3
    for missing, code in (({}, 23), ({"never": GONE}, 0)):
        (campaign / "plan.json").write_text(json.dumps({**plan, "missing": missing}))
        assert session("submit", [str(campaign), "--version", "2026.12", "--into", str(into)]) == code
    assert verify(into).findings == ()


def test_a_finding_that_cannot_be_repaired_is_submitted_once_the_version_lists_it(
    tmp_path: Path, into: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = "cartpole-turns/rl_games-kitless-n4096-1x1"
    source = write_campaign(tmp_path / "turns", "h200-turns")
    (source / "cases" / f"{lost}.json").unlink()
    plan = json.loads((source / "plan.json").read_text())
    (source / "plan.json").write_text(json.dumps({**plan, "missing": {lost: GONE}}))
    version = into / "2026.12"
    version.mkdir()
    output = refused(source, into, ResultsDiffer, capsys, "--name", "turns", "--version", "2026.12")
    got = re.search(r"turns: neighbours in turns is (missing: .+), expected stored too", output)
    assert got
    weakness = {"where": "turns", "what": "neighbours in turns", "got": got[1], "why": "The machine was taken away."}
    lines = [f"{name} = {json.dumps(text)}" for name, text in weakness.items()]
    (version / "weaknesses.toml").write_text("\n".join(["[[weakness]]", *lines]))
    assert session("submit", [str(source), "--into", str(into), "--name", "turns", "--version", "2026.12"]) == 0
    assert (verify(into).findings, len(verify(into).known_weaknesses)) == ((), 1)


def test_a_new_version_stands_beside_the_one_that_readme_shows(campaign: Path, with_version: Path) -> None:
    assert session("submit", [str(campaign), "--into", str(with_version), "--version", "2026.12"]) == 0
    verified = verify(with_version)
    assert (verified.findings, verified.published_cases) == ((), verify(with_version / "2026.11").published_cases + 2)


def test_a_set_with_its_plan_leaves_the_known_weakness_of_those_without_as_it_is(campaign: Path, into: Path) -> None:
    shutil.copytree(command.INTO / "2026.11" / "h200-open-rsl", into / "2026.11" / "theirs")
    (into / "2026.11" / "report.toml").write_text('[[set]]\nfolder = "theirs"')
    weakness = '[[weakness]]\nwhere = "."\nwhat = "plan.json"\ngot = "missing in 1 set"\nwhy = "It was not stored."\n'
    (into / "2026.11" / "weaknesses.toml").write_text(weakness)
    assert session("submit", [str(campaign), "--into", str(into)]) == 0
    assert verify(into).findings == ()
    assert [entry["folder"] for entry in entries(into / "2026.11")] == ["theirs", NAME]


def refused(
    campaign: Path, into: Path, error: type[LabscaleError], capsys: pytest.CaptureFixture[str], *options: str
) -> str:
    """What the command says when it refuses; neither the versions nor the campaign's folder changed."""
    before = content(into.parents[1])
    assert session("submit", [str(campaign), "--into", str(into), *options]) == error.exit_code
    assert content(into.parents[1]) == before
    return capsys.readouterr().err


def test_a_set_is_added_to_the_newest_version_once(
    campaign: Path, with_version: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = with_version / "2026.11"
    (with_version / "2026.09").mkdir()
    (version / SIGNATURE).write_text("of the hashes before")
    before = content(version)
    options = ["--name", "desk", "--title", 'The "desk"', "--contributed-by", "Lab", "--link", "https://example.org/a"]
    assert session("submit", [str(campaign), "--into", str(with_version), *options]) == 0
    assert entries(version)[-1] == {
        "folder": "desk", "title": 'The "desk"', "contributed_by": "Lab", "link": "https://example.org/a",
    }  # fmt: skip
    now = content(version)
    changed = {name for name in before if before[name] != now.get(name)}
    assert changed == {"report.toml", "figures.csv", "SHA256SUMS", SIGNATURE}
    assert {name.partition("/")[0] for name in now.keys() - before.keys()} == {"desk"}
    assert verify(with_version).findings == ()
    assert f"{version / 'desk'} exists" in refused(campaign, with_version, StoreError, capsys, "--name", "desk")
    refused(campaign, with_version, ResultsDiffer, capsys)  # the same samples under another name


def without_commit(stored: Any) -> None:
    for computer in stored["labscale"]["machines"]:
        computer["git_commit"] = None


def with_changes(stored: Any) -> None:
    machine(stored, 1)["git_dirty"] = True


def of_another_commit(stored: Any) -> None:
    machine(stored, 1)["git_commit"] = "0" * 40


def with_another_kernel(stored: Any) -> None:
    machine(stored, 1)["kernel"] = "6.2"


@pytest.mark.parametrize(
    ("change", "error", "cause"),
    [
        (lambda folder: (folder / "campaign.json").unlink(), NotFitToSubmit, "has no campaign.json"),
        (lambda folder: (folder / "campaign.json").write_text("{"), StoreError, "campaign.json is not read"),
        (lambda folder: (folder / "campaign.json").write_text('{"rounds": "x"}'), StoreError, "rounds: Input"),
        (lambda folder: (folder / "plan.json").unlink(), NotFitToSubmit, "has no plan.json"),
        (lambda folder: (folder / CASE).unlink(), NotFitToSubmit, "1 of 2 planned configurations is not"),
        (lambda folder: shutil.rmtree(folder / "cases"), NotFitToSubmit, "has no stored result"),
        (lambda folder: damage(folder / CASE, with_changes), NotFitToSubmit, "a commit with local changes"),
        (lambda folder: damage(folder / CASE, without_commit), NotFitToSubmit, "know no commit of labscale"),
        (lambda folder: damage(folder / CASE, of_another_commit), NotFitToSubmit, "runs of several commits"),
        (lambda folder: damage(folder / CASE, put("benchmarks/0/stats/median", 1)), ResultsDiffer, f"{CASE}: "),
        # A campaign may have run on two machines, a set of a version may not.
        (lambda folder: damage(folder / CASE, with_another_kernel), ResultsDiffer, f"{NAME}: the kernel"),
    ],
)
def test_what_is_not_fit_is_refused(
    change: Callable[[Path], None],
    error: type[LabscaleError],
    cause: str,
    campaign: Path,
    into: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(campaign)
    assert cause in refused(campaign, into, error, capsys)


def test_results_of_a_cpu_are_refused(tmp_path: Path, into: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_campaign(tmp_path / "cpu", "cpu-learning-1")
    assert "has no run on a GPU" in refused(source, into, NotFitToSubmit, capsys)


@pytest.mark.parametrize(
    "options",
    [
        ("--version", "latest"), ("--name", "../x"), ("--link", "ftp://example.org"), ("--into", "nowhere"),
        ("--link", "https://example.org"),  # without --contributed-by
    ],
)  # fmt: skip
def test_wrong_options_are_refused(
    options: tuple[str, str], campaign: Path, into: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert options[1] in refused(campaign, into, UsageError, capsys, *options)


def test_what_cannot_be_written_changes_nothing(
    campaign: Path, with_version: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(version: Path, _final: Path) -> None:
        assert (version / "figures.csv").read_text()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(command, "put_in_place", fail)
        assert "No space left" in refused(campaign, with_version, StoreError, capsys, "--version", "2026.12")
    (campaign / TEXT_FILE).mkdir()
    message = refused(campaign, with_version, StoreError, capsys, "--version", "2026.12")
    assert f"{campaign / TEXT_FILE} cannot be written: Is a directory" in message


def test_a_version_comes_back_if_its_successor_cannot_be_moved(into: Path) -> None:
    (into / "2026.11").mkdir()
    (into / "2026.11" / "report.toml").write_text("")
    before = content(into)
    with pytest.raises(FileNotFoundError):
        put_in_place(into / "missing", into / "2026.11")
    assert content(into) == before


def test_two_at_once_add_both_sets(campaign: Path, into: Path, tmp_path: Path) -> None:
    other = write_campaign(tmp_path / "other", "h200-open-rsl")
    with ThreadPoolExecutor() as pool:
        codes = pool.map(lambda source: session("submit", [str(source), "--into", str(into)]), (campaign, other))
    assert [*codes] == [0, 0]
    (version,) = into.iterdir()
    assert len(entries(version)) == 2
    assert verify(into).findings == ()
