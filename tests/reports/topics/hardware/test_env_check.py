"""What env_check said of machines: counted on the pages, as figures, and by the verifier from the records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from reports.display.topic import Figures
from reports.sets.version import Version, read_version
from reports.topics.hardware.env_check import Looked, alike_hosts, by_verdict
from reports.topics.hardware.figures import hardware_figures, machine_figures
from reports.topics.hardware.gpu_page import CPUS, what_folds_show
from reports.topics.hardware.page import env_checks
from reports.verification.finding import Json
from reports.verification.formulas import MSER_RULE, seconds_per_iteration
from reports.verification.pages.hardware import machines as verifier
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion
from suite.schema.record import CaseResult, CheckResult, Environment
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_record, write_results

FINE = CheckResult(name="driver", feature="gpu", verdict="ok", found="580", fault=None)
SLOW = CheckResult(name="core_speed", feature="cpu", verdict="warning", found="slow", fault="cores_slowed")
START = "2026-11-21T08:00:00+00:00"
KIND = "generated-acceleratorx8-20261121-0800"
STARTED = dict.fromkeys(("first_started_utc", "last_started_utc"), "2026-11-21T08:00:00+00:00")


def result(series: str, *environments: Environment) -> CaseResult:
    """One round on each machine, all of which started in one minute."""
    case = make_case(series, device="cuda", num_envs_global=4096)
    records = (make_record(case, index=index) for index in range(len(environments)))
    rounds = zip(records, environments, strict=True)
    moved = tuple(replace(record, environment=where, started_utc=START) for record, where in rounds)
    return CaseResult(case=case, rounds=moved)


def machine(label: str | None, *checks: CheckResult) -> Environment:
    return replace(GPU_HOST, host_label=label, checks=checks)


def said(results: Mapping[str, Sequence[CaseResult]], folder: Path) -> tuple[Version, Mapping[str, Figures]]:
    """Return the version, and the counts that both pages state, which are also those of the verifier."""
    for name, those in results.items():
        write_results(those, folder / name)
    (folder / "report.toml").write_text("".join(f'[[set]]\nfolder = "{name}"\n' for name in results))
    version = read_version(folder, name="v")
    stored = StoredVersion(sets=tuple(_stored(folder / name, those) for name, those in results.items()))
    ours = counted({**machine_figures(version), **hardware_figures(version)})
    assert counted({**verifier.figures(stored), **verifier.hardware_figures(stored)}) == ours
    return version, ours


def _stored(folder: Path, results: Sequence[CaseResult]) -> StoredSet:
    cases = []
    for one in results:
        case, rounds = (json.loads(json.dumps(each)) for each in (asdict(one.case), list(map(asdict, one.rounds))))
        where = f"cases/{one.case.case_id}.json"
        stored = StoredCase(where=where, case=case, rounds=rounds, ended_because=None, rule=MSER_RULE)
        stored.published_s.update({record["round"]: seconds_per_iteration(record, MSER_RULE) for record in rounds})
        cases.append(stored)
    return StoredSet(name=folder.name, folder=folder, cases=tuple(cases), findings=(), has_plan=True)


def counted(figures: Mapping[str, Figures] | Mapping[str, Json]) -> Mapping[str, Figures]:
    kinds = ("env_check, ", "machines", "rounds by machine", KIND)
    return {of: row for of, row in figures.items() if any(kind in of for kind in kinds)}


def test_hosts_of_which_the_same_was_said_share_a_fold(tmp_path: Path) -> None:
    other = replace(FINE, found="581")  # of a check that is fine nothing is shown
    slower = replace(SLOW, found="slower")
    first = result("cartpole-weak", machine("a", FINE, SLOW), machine("b", other, SLOW), machine("c", FINE, slower))
    version, figures = said({"one": [first], "two": [result("ant-weak", machine("d"))]}, tmp_path)
    assert [len(hosts) for hosts in alike_hosts(version)] == [2, 1, 1]
    assert figures["env_check, 1"] == {
        "hosts": 2, "where": [f"one: {KIND}", f"one: {KIND}-2"], "checks": 2, "verdicts": {"ok": 1, "warning": 1},
    }  # fmt: skip
    assert figures["env_check, 3"] == {"hosts": 1, "where": [f"two: {KIND}-4"], "checks": None, "verdicts": None}
    assert figures["machines"] == {"machines": 4, "checked": 3, "with_failure": 0, "with_warning": 3}
    shown = env_checks(version).text
    assert "The same of 2 hosts" in shown
    assert shown.count("2 checks: 1 ok, 1 warning.") == 2
    assert figures[f"Generated Accelerator: {KIND}"] == {
        "first_started_utc": "2026-11-21T08:00:00+00:00",
        "runs": 1,
        "tasks": ["Isaac-Cartpole-Direct"],
        "env_check": [{"checks": 2, "verdicts": {"ok": 1, "warning": 1}}],
    }


def test_a_machine_has_each_set_of_verdicts_once_and_a_row_for_each_commit(tmp_path: Path) -> None:
    before = machine("a", FINE, SLOW)
    later = replace(machine("a", FINE, replace(SLOW, verdict="ok", fault=None)), git_commit="f" * 40)
    again = replace(machine("a", replace(FINE, found="581"), SLOW), git_commit=before.git_commit)
    _, figures = said({"one": [result("cartpole-weak", before, later, again)]}, tmp_path)
    assert figures["one: rounds by machine"] == {
        KIND: [{"rounds": 2, **STARTED}, {"rounds": 1, **STARTED}],
    }  # fmt: skip
    assert figures[f"Generated Accelerator: {KIND}"]["env_check"] == [
        {"checks": 2, "verdicts": {"ok": 1, "warning": 1}}, {"checks": 2, "verdicts": {"ok": 2}},
    ]  # fmt: skip
    assert figures["machines"] == {"machines": 1, "checked": 1, "with_failure": 0, "with_warning": 1}


def test_without_labels_what_has_one_name_on_one_day_is_one_machine(tmp_path: Path) -> None:
    fewer = replace(machine(None, FINE), gpus=GPU_HOST.gpus[:2])
    _, figures = said({"one": [result("cartpole-weak", machine(None, FINE), machine(None, SLOW), fewer)]}, tmp_path)
    assert figures["machines"] == {"machines": 2, "checked": 2, "with_failure": 0, "with_warning": 1}


def test_the_folds_of_machines_open_with_what_they_show() -> None:
    found = Looked(machines=3, checked=2, with_failure=0, with_warning=1)
    assert "failed on none, and warned on 1" in what_folds_show(found, "NVIDIA H200")
    assert "power" not in what_folds_show(found, CPUS)


@pytest.mark.parametrize("name", ["h200-one", "h200-x2", "h200-x2-without-loaders"])
def test_a_report_beside_the_sets_is_counted_too(name: str) -> None:
    version = committed_version()
    (report,) = (each for each in version.env_checks if each.name == name)
    row = machine_figures(version)[f"env_check, {name}"]
    assert row == {"checks": len(report.checks), "verdicts": by_verdict(report.checks)}
