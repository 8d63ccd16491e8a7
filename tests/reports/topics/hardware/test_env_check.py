"""What env_check said of machines, as the pages count and show it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reports.sets.version import Version, read_version
from reports.topics.hardware.env_check import Looked, alike_hosts, by_verdict, looked_at, said_of
from reports.topics.hardware.gpu_page import CPUS, what_folds_show
from reports.topics.hardware.page import env_checks
from suite.schema.record import CaseResult, CheckResult, Environment
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_record, write_results

FINE = CheckResult(name="driver", feature="gpu", verdict="ok", found="580", fault=None)
SLOW = CheckResult(name="core_speed", feature="cpu", verdict="warning", found="slow", fault="cores_slowed")
START = "2026-11-21T08:00:00+00:00"


def result(series: str, *environments: Environment) -> CaseResult:
    """One round on each machine, all of which started in one minute."""
    case = make_case(series, device="cuda", num_envs_global=4096)
    records = (make_record(case, index=index) for index in range(len(environments)))
    rounds = zip(records, environments, strict=True)
    moved = tuple(replace(record, environment=where, started_utc=START) for record, where in rounds)
    return CaseResult(case=case, rounds=moved)


def machine(label: str | None, *checks: CheckResult) -> Environment:
    return replace(GPU_HOST, host_label=label, checks=checks)


def version_of(results: Mapping[str, Sequence[CaseResult]], folder: Path) -> Version:
    for name, those in results.items():
        write_results(those, folder / name)
    (folder / "report.toml").write_text("".join(f'[[set]]\nfolder = "{name}"\n' for name in results))
    return read_version(folder, name="v")


def test_hosts_of_which_the_same_was_said_share_a_fold(tmp_path: Path) -> None:
    other = replace(FINE, found="581")  # of a check that is fine nothing is shown
    slower = replace(SLOW, found="slower")
    first = result("cartpole-weak", machine("a", FINE, SLOW), machine("b", other, SLOW), machine("c", FINE, slower))
    version = version_of({"one": [first], "two": [result("ant-weak", machine("d"))]}, tmp_path)
    assert [len(hosts) for hosts in alike_hosts(version)] == [2, 1, 1]
    assert looked_at(version.machines) == Looked(machines=4, checked=3, with_failure=0, with_warning=3)
    shown = env_checks(version).text
    assert "The same of 2 hosts" in shown
    assert shown.count("2 checks: 1 ok, 1 warning.") == 2


def test_a_machine_has_each_set_of_verdicts_once(tmp_path: Path) -> None:
    before = machine("a", FINE, SLOW)
    later = replace(machine("a", FINE, replace(SLOW, verdict="ok", fault=None)), git_commit="f" * 40)
    again = replace(machine("a", replace(FINE, found="581"), SLOW), git_commit=before.git_commit)
    version = version_of({"one": [result("cartpole-weak", before, later, again)]}, tmp_path)
    (found,) = version.machines
    assert [by_verdict(checks) for checks in said_of(found)] == [{"ok": 1, "warning": 1}, {"ok": 2}]
    assert looked_at([found]) == Looked(machines=1, checked=1, with_failure=0, with_warning=1)


def test_without_labels_what_has_one_name_on_one_day_is_one_machine(tmp_path: Path) -> None:
    fewer = replace(machine(None, FINE), gpus=GPU_HOST.gpus[:2])
    version = version_of({"one": [result("cartpole-weak", machine(None, FINE), machine(None, SLOW), fewer)]}, tmp_path)
    assert looked_at(version.machines) == Looked(machines=2, checked=2, with_failure=0, with_warning=1)


def test_the_folds_of_machines_open_with_what_they_show() -> None:
    found = Looked(machines=3, checked=2, with_failure=0, with_warning=1)
    assert "failed on none, and warned on 1" in what_folds_show(found, "NVIDIA H200")
    assert "power" not in what_folds_show(found, CPUS)
