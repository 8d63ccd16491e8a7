"""Files that a user, a run or another machine wrote: which are read."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.__main__ import main as reports
from suite.__main__ import main as suite
from suite.campaign.folder import opened
from suite.errors import CampaignError
from suite.files.input_file import LARGEST_BYTES
from suite.files.paths import ROOT

SET = ROOT / "reports/results/2026.12/h200-physx"
CASE = "cases/ant-physics/rsl_rl-kitless-n1024-1x1.json"


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)


UNREADABLE: dict[str, Callable[[Path], None]] = {
    "Not a regular file": os.mkfifo,
    "Not a regular file.": lambda path: path.symlink_to("/dev/zero"),
    "Larger than 2": sparse,
}


@pytest.mark.parametrize("why", UNREADABLE)
@pytest.mark.parametrize(
    ("session", "exit_code"), [("verify", 16), ("report", 14), ("compare", 14), ("export", 14), ("accept", 14)]
)
def test_a_pipe_a_device_and_a_file_without_end_are_no_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], why: str, session: str, exit_code: int
) -> None:
    results = tmp_path / "results"
    shutil.copytree(SET, results)
    (results / CASE).unlink()
    UNREADABLE[why](results / CASE)
    others = {"compare": [str(SET)], "export": ["--format", "bencher"]}.get(session, [])
    assert reports(session, [str(results), *others]) == exit_code
    assert f"{results / CASE} cannot be read: {why}" in capsys.readouterr().err


@pytest.mark.parametrize("why", UNREADABLE)
def test_a_campaign_whose_file_is_a_pipe_or_a_device_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], why: str
) -> None:
    record, identity, lock = (tmp_path / name for name in ("raw/a/b/r0/record.json", "campaign.json", ".lock"))
    record.parent.mkdir(parents=True)
    identity.write_text("{}")
    UNREADABLE[why](record)
    assert suite(["store", str(tmp_path)]) == 14
    assert f"{record} cannot be read: {why}" in capsys.readouterr().err
    identity.unlink()
    UNREADABLE[why](identity)
    with pytest.raises(CampaignError, match=rf"campaign\.json .*{why}"), opened(tmp_path, {}):
        pass
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(CampaignError, match=f"{tmp_path} cannot be written: No such device"), opened(tmp_path, {}):
        pass
