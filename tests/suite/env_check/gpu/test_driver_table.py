"""Which driver a stack needs, by the table of drivers, and the errors of that table."""

from pathlib import Path

import pytest

from suite.env_check.gpu.driver import DRIVERS_PATH, drivers_for, judge_driver_for_stack, read_drivers
from suite.errors import MatrixError
from suite.schema.record import Stack


@pytest.mark.parametrize(
    ("stack", "release", "version", "verdict", "fault"),
    [
        ("kitless", None, "580.65.06", "ok", None),
        ("kitless", None, "595.71.05", "ok", None),
        ("kitless", None, "580.65.05", "failure", "driver_too_old"),
        ("kitless", None, "570.211.01", "failure", "driver_too_old"),
        ("ovphysx", None, "580.159.04", "ok", None),
        ("isaacsim", None, "580.65.06", "failure", "driver_too_old"),
        ("isaacsim", "6.0.1", "595.58.03", "ok", None),
        ("isaacsim", "5.1.0", "580.65.06", "ok", None),
        ("isaacsim", "5.1.0", "595.71.05", "failure", "driver_known_bad"),
        ("isaacsim", "5.1.0", "610.43.02", "failure", "driver_known_bad"),
        ("isaacsim", "5.1.0", "600.10", "warning", "driver_not_validated"),
        ("isaacsim", None, None, "not_checked", None),
    ],
)
def test_driver_for_stack(
    stack: Stack, release: str | None, version: str | None, verdict: str, fault: str | None
) -> None:
    check = judge_driver_for_stack(version, drivers_for(stack, read_drivers(), release=release))
    assert (check.verdict, check.fault) == (verdict, fault)
    if fault:
        assert "580." in (check.repair or "")
    if fault == "driver_known_bad":
        assert "IsaacSim #" in check.found


def test_a_release_that_no_entry_names_gets_the_first() -> None:
    assert drivers_for("isaacsim", read_drivers(), release="7.0").release == "6"
    with pytest.raises(LookupError, match="ovphysx"):
        drivers_for("ovphysx", read_drivers()[:1])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('below = "596"', 'below = "595"', "'from'"),
        ('release = "5.1"', 'release = "6"', "isaacsim 6"),
    ],
)
def test_an_error_that_only_this_table_can_have_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = DRIVERS_PATH.read_text()
    assert old in text
    path = tmp_path / "drivers.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(MatrixError, match=r"drivers\.toml") as caught:
        read_drivers(path)
    assert message in str(caught.value)
