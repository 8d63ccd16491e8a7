"""Hosts and platforms as tables: what is one host is one row, and what many share is said once."""

import re
from dataclasses import replace

from reports.analysis.environments import Place, plain_name
from reports.analysis.machines import Found, machines
from reports.topics.hardware import page as where_it_ran
from reports.topics.hardware import tables as machine_tables
from suite.schema.record import CheckResult
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import GPU_HOST

ONE = Place(
    environment=replace(GPU_HOST, host_label="a"),
    versions={"torch": "2.11.0"},
    num_rounds=3,
    first_started_utc="2026-11-21T23:50:00+00:00",
    last_started_utc="2026-11-21T23:58:00+00:00",
)


def rows(sets: list[tuple[str, list[Place]]]) -> list[list[str]]:
    found = [Found(set_name=title, whose=None, place=place) for title, places in sets for place in places]
    hosts = [
        machine_tables.Host(title=each.set_name, machine=machine, shown=machine.name, place=each.place)
        for each in found
        for machine in machines(found)
        if each in machine.found
    ]
    return [line.split("\t") for line in machine_tables.hosts_table(hosts, label="x").text.splitlines()]


def test_a_host_is_one_row_whatever_was_checked_of_it_meanwhile() -> None:
    later = replace(
        ONE,
        environment=replace(ONE.environment, checks=()),
        num_rounds=2,
        first_started_utc="2026-11-22T00:10:00+00:00",
        last_started_utc=None,
    )
    heading, row = rows([("", [ONE, later])])
    assert heading[:2] == ["Machine", "Label in its records"]
    assert row[:2] == [plain_name(ONE), "a"]
    assert row[3:] == ["2026-11-21 23:50 to 2026-11-22 00:10", row[4], "1", "5"]


def test_hosts_that_differ_have_rows_of_their_own_and_name_their_platform() -> None:
    other = replace(ONE, environment=replace(ONE.environment, driver_version="999.1"))
    more = replace(
        ONE, environment=replace(ONE.environment, git_commit="f" * 40, git_dirty=True), first_started_utc=None
    )
    heading, *found = rows([("first", [ONE, other]), ("second", [ONE, replace(more, last_started_utc=None)])])
    platform, measured = heading.index("Platform"), heading.index("Measured (UTC)")
    assert [(row[0], row[platform]) for row in found] == [
        ("first", "1"), ("first", "2"), ("second", "1"), ("second", "1"),
    ]  # fmt: skip
    assert found[0][measured] == "2026-11-21 23:50 to 23:58"
    assert found[3][measured] == "n/a"
    assert found[3][3] == "ffffffffffff, with local changes"


def test_platforms_say_what_is_the_same_once_and_what_nobody_knows() -> None:
    other = replace(ONE, environment=replace(ONE.environment, driver_version=None))
    table = machine_tables.platforms_table([ONE, other], label="x")
    found = {name: values for name, *values in (line.split("\t") for line in table.text.splitlines())}
    assert found["Fact"] == ["Platform 1", "Platform 2"]
    assert found["GPU driver"] == [GPU_HOST.driver_version, "n/a"]
    assert found["Packages"] == ["torch 2.11.0", "torch 2.11.0"]


def test_checks_have_a_column_for_repairs_where_there_are_any() -> None:
    warning = CheckResult(name="core_speed", feature="cpu", verdict="warning", found="slow", fault="cores_slowed")
    fine = replace(warning, name="driver", verdict="ok", fault=None)
    plain = machine_tables.checks([warning, fine], {}, label="x").text.splitlines()
    assert plain == ["2 checks: 1 warning, 1 ok.", "Check\tVerdict\tFound", "core_speed\twarning\tslow"]
    repaired = machine_tables.checks([warning, fine], {"core_speed": "Ask for whole cores."}, label="x").text
    assert repaired.splitlines()[1:] == [
        "Check\tVerdict\tFound\tRepair", "core_speed\twarning\tslow\tAsk for whole cores.",
    ]  # fmt: skip


def test_the_page_opens_with_how_many_machines_ran_and_what_env_check_found() -> None:
    said = where_it_ran.opening(committed_version()).text
    labels = {record.environment.host_label for one in committed_version().sets for record in one.campaign.completed}
    assert said.startswith(f"{len(labels)} machines ran this: CPUs, H100 80GB HBM3, H200; env_check looked at ")
    assert where_it_ran.opening(replace(committed_version(), sets=())).text == "Nothing here was measured by labscale."


def test_what_env_check_said_of_a_host_is_in_a_fold() -> None:
    shown = where_it_ran.env_checks(committed_version())
    assert re.sub(r"(?s)<details.*?</details>\s*", "", shown.markup) == ""
    assert "The same of " in shown.text
