"""The checks of a rank's own work find every fault that is put in, and nothing in a sound environment."""

from typing import Any, Final

import pytest

pytestmark = pytest.mark.worker

FORM, MARKER, STEPS = (f"tiled_camera {check}" for check in ("form", "marker", "steps"))
START, END = "physics state after training", "physics state after steps"
# Fault put in -> the checks that must fail, each by its word; the others must pass.
WANTED: Final = {
    "none": {},
    "blank": {FORM: "camera_constant", MARKER: "camera_frozen", STEPS: "camera_frozen"},
    "blank_in_one_environment": {FORM: "camera_constant", MARKER: "camera_frozen", STEPS: "camera_frozen"},
    "nan_depth": {FORM: "camera_not_finite"},
    "frozen": {MARKER: "camera_frozen", STEPS: "camera_frozen"},
    "swapped": {MARKER: "camera_not_own_image"},
    "copies_of_the_first": {MARKER: "camera_not_own_image"},
    "wrong_height": {FORM: "camera_wrong_form"},
    "missing_type": {FORM: "camera_wrong_form"},
}


@pytest.fixture(scope="module")
def judged(hand: dict[str, Any]) -> Any:
    return hand["pictures"]


@pytest.mark.parametrize("fault", WANTED)
def test_a_fault_is_found_and_named(fault: str, judged: dict[str, dict[str, Any]]) -> None:
    checks = judged[fault]
    assert set(checks) == {START, FORM, MARKER, STEPS, END}
    assert {name: word for name, (verdict, word, _) in checks.items() if verdict == "failure"} == WANTED[fault]
    assert all(verdict in ("ok", "failure") for verdict, _, _ in checks.values())


def test_the_environment_at_fault_is_named(judged: dict[str, dict[str, Any]]) -> None:
    for fault, camera, where in (
        ("blank_in_one_environment", "tiled_camera.rgb", "1 of 4 environments (3)"),
        ("nan_depth", "tiled_camera.depth", "1 of 4 environments (2)"),
    ):
        assert camera in judged[fault][FORM][2]
        assert where in judged[fault][FORM][2]


def test_a_body_that_is_nowhere_is_found(judged: dict[str, dict[str, Any]]) -> None:
    verdict, word, text = judged["nan_position"][END]
    assert (verdict, word) == ("failure", "physics_not_finite")
    assert text.endswith("is not finite in 1 of 4 environments (1)")
