import json
from pathlib import Path

import pytest

from suite import folder as folder_module
from suite.errors import CampaignError
from suite.folder import Folder, opened
from tests.conftest import CaseMaker

IDENTITY = {"matrix": "smoke", "gpus": ["H200"], "rounds": None}


def test_a_folder_belongs_to_one_campaign(tmp_path: Path) -> None:
    with opened(tmp_path / "out", IDENTITY):
        pass
    with opened(tmp_path / "out", IDENTITY) as again:
        assert json.loads((again.root / "campaign.json").read_text()) == IDENTITY
    with (
        pytest.raises(CampaignError, match=r"gpus: there \['H200'\], now \['L40'\]"),
        opened(tmp_path / "out", {**IDENTITY, "gpus": ["L40"]}),
    ):
        pass


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with (
        opened(tmp_path, IDENTITY),
        pytest.raises(CampaignError, match="Another labscale process"),
        opened(tmp_path, IDENTITY),
    ):
        pass


def test_a_corrupt_campaign_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text('{"matrix": ')
    with pytest.raises(CampaignError, match=r"campaign\.json is not readable"), opened(tmp_path, IDENTITY):
        pass
    assert (tmp_path / "campaign.json").read_text() == '{"matrix": '


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CampaignError, match=r"cannot be written.*--out"), opened(tmp_path / "file" / "out", IDENTITY):
        pass


def test_what_is_set_aside_is_kept_and_is_no_result(tmp_path: Path, make_case: CaseMaker) -> None:
    folder, case = Folder(root=tmp_path), make_case()
    path = folder.case_path(case)
    assert folder.set_aside(path, "superseded") is None
    names = []
    for content in ("first", "second"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        aside = folder.set_aside(path, "superseded")
        assert aside
        names.append(aside.name)
        assert aside.read_text() == content
    assert names == [f"{path.name}.superseded-1", f"{path.name}.superseded-2"]
    assert not list(tmp_path.rglob("*.json"))


def test_too_little_space_is_said_before_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MIN_FREE_GB", 1e9)
    with pytest.raises(CampaignError, match="GB free; a round needs"):
        Folder(root=tmp_path).require_space()


def test_finished_means_that_the_record_is_there(tmp_path: Path, make_case: CaseMaker) -> None:
    folder, case = Folder(root=tmp_path), make_case()
    folder.run_dir(case, 1).mkdir(parents=True)
    assert not folder.is_finished(case, 1)
    folder.record_path(case, 1).write_text("{}")
    assert folder.is_finished(case, 1)
    assert not folder.is_finished(case, 0)
