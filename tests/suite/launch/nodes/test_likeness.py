"""Which report of several hosts is shown. What the hosts do is in ``ssh.test_ssh_bench``, over real ssh."""

import pytest

from suite.env_check.check import Check, Verdict
from suite.env_check.report import Report
from suite.env_check.request import Needs
from suite.launch.nodes.likeness import worst


def report(host: str, verdict: Verdict) -> Report:
    fault, repair = (None, None) if verdict == "ok" else ("host_busy", "wait")
    check = Check(
        name="cpu_load", feature="host", verdict=verdict, found="x", wanted="y", fault=fault, repair=repair,
        evidence=None,
    )  # fmt: skip
    needs = Needs(features=frozenset({"host"}), checks=frozenset())
    return Report(host=host, stack="kitless", device="cpu", needs=needs, checks=(check,), duration_s=1.0)


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [
        (("ok", "ok"), "n0"),
        (("ok", "warning", "warning"), "n1"),
        (("warning", "ok", "failure"), "n2"),
        (("failure", "failure"), "n0"),
    ],
)
def test_what_one_host_alone_finds_is_shown(verdicts: tuple[Verdict, ...], shown: str) -> None:
    assert worst([report(f"n{number}", verdict) for number, verdict in enumerate(verdicts)]).host == shown
