"""Charts of a site are drawn with the font that comes with the drawing tool, whatever the machine has installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite.files.paths import ROOT

CONFIG = ROOT / "book" / "fonts.conf"
FOLDER = Path("/usr/share/fonts")
DRAW = """
import sys, vl_convert
spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "config": {"font": sys.argv[1]},
    "data": {"values": [{"case": "the label of an axis, as wide as its letters"}]},
    "mark": "point",
    "encoding": {"y": {"field": "case", "type": "nominal", "axis": {"labelLimit": 1000}}},
}
print(vl_convert.vegalite_to_svg(spec).replace(sys.argv[1], ""))
"""


def drawn(font: str, **environment: str) -> str:
    command, variables = [sys.executable, "-c", DRAW, font], {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not list(FOLDER.rglob("DejaVuSansMono.ttf")), reason="the machine has no font to be left out")
def test_a_font_of_the_machine_is_not_used() -> None:
    assert drawn("DejaVu Sans Mono") != drawn("No Such Font")
    without = drawn("DejaVu Sans Mono", FONTCONFIG_FILE=str(CONFIG))
    assert without == drawn("No Such Font", FONTCONFIG_FILE=str(CONFIG))
