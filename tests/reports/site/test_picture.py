"""README's picture."""

import struct
from pathlib import Path

import pytest

from reports.site import picture
from tests.fixtures.machines.browser import Browser


def size_of(png: Path) -> tuple[int, int]:
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def test_the_first_page_is_drawn_as_readme_shows_it(published_site: Path, browser: Browser, tmp_path: Path) -> None:
    assert browser  # it is installed
    file = tmp_path / "report.png"
    assert picture.main([str(published_site), str(file)]) == 0
    assert size_of(file) == size_of(picture.PICTURE) == (picture.WIDTH_PX, picture.HEIGHT_PX)
    assert file.stat().st_size > 50_000  # an empty page has a tenth of it


def test_what_is_missing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert picture.main([str(tmp_path), str(tmp_path / "a.png")]) == 16
    assert "Build it first: nox -s publish" in capsys.readouterr().err
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "index.html").write_text("<p>")
    monkeypatch.setattr(picture, "BROWSERS", ("no-browser-at-all",))
    assert picture.main([str(tmp_path), str(tmp_path / "a.png")]) == 16
    assert "no-browser-at-all is installed" in capsys.readouterr().err
