"""What makes two results of one case unlike, and which of it a comparison may be about."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from reports.topics.history.command import main
from reports.topics.history.comparison import compare
from reports.topics.history.likeness import ENVIRONMENT_IDENTITY, differences
from suite.errors import UsageError
from suite.schema.record import CaseResult, Environment, RunRecord, Scalar
from suite.schema.transport import Interconnect, Transport
from tests.fixtures.results.generated_results import make_case, make_result, write_results
from tests.reports.topics.history.test_compare import QUIET, changed, elsewhere, first, results, words


def test_nodes_that_reached_each_other_otherwise_are_another_thing() -> None:
    def over(word: Interconnect | None) -> list[CaseResult]:
        transport = word and Transport(library="nccl", between_nodes=(word,))
        return changed(results(), lambda record: replace(record, transport=transport))

    (found, _) = compare(over("infiniband"), over("ethernet")).cases
    assert [item.name for item in found.differences] == ["interconnect"]
    assert words(compare(over("infiniband"), over("ethernet"), across=["interconnect"])) == {"unchanged"}
    assert words(compare(over("infiniband"), over(None))) == {"unchanged"}  # older results do not say


@pytest.mark.parametrize(
    "name", ["cuda_graph", "cuda_memory_pool_enabled", "cuda_driver_version", "torch_allocator_conf"]
)
def test_physics_without_its_cuda_graph_is_another_thing_where_both_sides_say_it(name: str) -> None:
    def saying(*, value: Scalar) -> Callable[[RunRecord], RunRecord]:
        return lambda record: replace(
            record, ranks=tuple(replace(rank, settings={**rank.settings, name: value}) for rank in record.ranks)
        )

    on, off = (changed(results(), saying(value=value)) for value in (True, False))
    assert [item.name for item in first(compare(on, off)).differences] == [f"settings.{name}"]
    assert words(compare(on, off, across=["settings.cuda*", "settings.torch_allocator*"])) == {"unchanged"}
    assert words(compare(results(), on)) == {"unchanged"}  # older results do not say
    partly = changed(results(), lambda record: saying(value=True)(record) if record.round else record)
    assert words(compare(partly, on)) == {"unchanged"}  # a campaign that a newer labscale went on with


def test_the_numa_nodes_of_a_place_are_no_difference() -> None:
    """Which GPU of a host ran a case does not make it another case."""

    def at(node: int) -> Callable[[RunRecord], RunRecord]:
        there: dict[str, Scalar] = {"gpu_numa_node": node, "cores_numa_nodes": str(node)}
        return lambda record: replace(
            record, ranks=tuple(replace(rank, settings={**rank.settings, **there}) for rank in record.ranks)
        )

    assert words(compare(changed(results(), at(0)), changed(results(), at(1)))) == {"unchanged"}


def test_a_package_that_is_not_installed_is_no_difference() -> None:
    def said(record: RunRecord) -> RunRecord:
        ranks = (replace(rank, settings={**rank.settings, "versions.ray": None}) for rank in record.ranks)
        return replace(record, ranks=tuple(ranks))

    assert words(compare(results(), changed(results(), said))) == {"unchanged"}


def test_other_assets_are_refused_by_name() -> None:
    found = compare(results(), elsewhere(results(), asset_sha256="00" * 32))
    assert (words(found), found.exit_code) == ({"incomparable"}, 2)
    assert first(found).change is None
    (difference,) = first(found).differences
    assert difference.name == "asset_sha256"
    assert ("ab" * 32 in difference.before, "00" * 32 in difference.after) == (True, True)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("image_digest", lambda record: replace(record, image_digest="sha256:0")),
        (
            "versions.torch",
            lambda record: replace(
                record,
                ranks=tuple(
                    replace(rank, settings={**rank.settings, "versions.torch": "9.9"}) for rank in record.ranks
                ),
            ),
        ),
    ],
)
def test_what_a_round_says_of_itself_is_identity(name: str, change: Callable[[RunRecord], RunRecord]) -> None:
    found = compare(results(), changed(results(), change))
    assert [item.name for item in first(found).differences] == [name]
    assert found.exit_code == 2


def test_a_setting_of_the_workload_is_identity() -> None:
    settings: dict[str, Scalar] = {"decimation": 2, "dt": 0.1}
    one = changed(results(), lambda record: replace(record, workload=settings))
    other = changed(results(), lambda record: replace(record, workload={**settings, "decimation": 4}))
    (difference,) = first(compare(one, other)).differences
    assert (difference.name, difference.before, difference.after) == ("workload.decimation", "2", "4")
    assert words(compare(one, one)) == {"unchanged"}


def test_results_without_a_fingerprint_are_refused_in_one_line_and_agree_with_others_like_them() -> None:
    """Results of labscale's first day have none."""
    with_it = changed(results(), lambda record: replace(record, workload={"decimation": 2, "dt": 0.1}))
    for one, other in ((results(), with_it), (with_it, results())):
        (difference,) = first(compare(one, other)).differences
        assert difference.name == "workload"
        assert {difference.before, difference.after} == {"no fingerprint stored", "a fingerprint of 2 settings"}
    assert words(compare(results(), results())) == {"unchanged"}


def test_a_fingerprint_of_some_rounds_only_is_a_mixture() -> None:
    mixed = changed(results(), lambda record: replace(record, workload={"dt": 0.1} if record.round else None))
    (difference,) = first(compare(mixed, mixed)).differences
    assert (difference.name, difference.before) == ("workload", "a fingerprint of 1 settings or no fingerprint stored")


def test_many_differences_are_counted_and_listed_whole_in_json_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_settings(value: int) -> list[CaseResult]:
        return changed(results(), lambda record: replace(record, workload={f"a{n}": value for n in range(40)}))

    one, other = with_settings(1), with_settings(2)
    folders = [str(write_results(each, tmp_path / name)) for name, each in (("one", one), ("other", other))]
    assert main(folders) == 2
    lines = capsys.readouterr().out.splitlines()
    (summary,) = (line for line in lines if line.startswith(one[0].case.case_id) and "incomparable: differs" in line)
    assert summary.endswith(", 28 more")
    assert "  and 28 more: --json has all" in lines
    assert main([*folders, "--json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["cases"][0]["differences"]) == 40


@pytest.mark.parametrize("name", ["task", "num_envs", "minibatch_rule", "minibatch_size", "iterations", "overrides"])
def test_another_case_under_the_same_id_is_refused(name: str) -> None:
    other = {"minibatch_rule": "fixed_updates", "task": "Isaac-Other", "overrides": ("agent.x=1",)}.get(name, 7)
    before = results()
    case = replace(before[0].case, **{name: other})  # type: ignore[arg-type]
    after = CaseResult(case=case, rounds=tuple(replace(record, case=case) for record in before[0].rounds))
    assert [item.name for item in differences(before[0], after)] == [name]


def test_timeouts_and_what_is_no_identity_may_differ() -> None:
    case = make_case(timeout_s=1.0)
    assert differences(make_result(make_case(), *QUIET), make_result(case, *QUIET)) == ()
    assert compare(results(), elsewhere(results(), host_label="x", git_commit="0" * 40)).exit_code == 0


def test_rounds_that_differ_among_themselves_are_a_mixture() -> None:
    mixed = changed(
        results(),
        lambda record: replace(
            record, environment=replace(record.environment, driver_version="2" if record.round else "1")
        ),
    )
    (difference,) = first(compare(mixed, mixed)).differences
    assert (difference.name, difference.before) == ("driver_version", "'1' or '2'")


def test_every_fact_of_an_environment_is_identity_or_known_not_to_be() -> None:
    not_identity = {"host_label", "memory_gb", "git_commit", "git_dirty", "checks"}
    shown_otherwise = {"gpus"}  # as gpu_names
    assert {item.name for item in fields(Environment)} == set(ENVIRONMENT_IDENTITY) | not_identity | shown_otherwise


def test_a_declared_axis_may_differ_and_is_shown() -> None:
    newer = elsewhere(results(), driver_version="999.0", kernel="7.0")
    one = compare(results(), newer, across=["driver_version"])
    assert [item.name for item in first(one).differences] == ["kernel"]
    both = compare(results(), newer, across=["driver_version", "kernel"])
    assert (both.exit_code, [item.name for item in first(both).across]) == (0, ["driver_version", "kernel"])


@pytest.mark.parametrize("name", ["task", "asset_sha256", "*", "workload.decimation", "driver"])
def test_a_workload_is_no_axis(name: str) -> None:
    with pytest.raises(UsageError, match="no axis of a comparison"):
        compare(results(), results(), across=[name])
