"""What tests of EGL's and of Vulkan's checks ask of one that found a fault."""

from suite.env_check.check import Judgement


def assert_failure(check: Judgement, fault: str, found: str, repair: str) -> None:
    """``found`` and ``repair``: parts of what the check says."""
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert found in check.found, check
    assert repair in (check.repair or ""), check
