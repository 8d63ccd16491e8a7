import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from reports import import_command
from reports.compare import ENVIRONMENT_IDENTITY, CaseComparison, Comparison, compare, differences
from reports.compare_command import main
from suite.a_a import noise_budget, twin_pairs
from suite.errors import ReportError, StoreError, UsageError
from suite.schema import CaseResult, Environment, Interconnect, RunRecord, Scalar, Transport
from tests.generated_results import failed_result, make_case, make_result, write_results

QUIET = (1.0, 1.002, 1.004, 0.998, 1.001)
NOISY = (1.0, 1.2, 0.8, 1.1, 0.9)


def results(times_s: Sequence[float] = QUIET, *, factor: float = 1.0) -> list[CaseResult]:
    """Two cases, each ``factor`` times ``times_s``."""
    cases = [make_case(world_size=ranks) for ranks in (1, 2)]
    return [make_result(case, *(factor * time_s / case.world_size for time_s in times_s)) for case in cases]


def next_day(found: list[CaseResult]) -> list[CaseResult]:
    """The same, not interleaved with anything, so that nothing can be paired."""
    return changed(
        found, lambda record: replace(record, started_utc=(record.started_utc or "").replace("-21T", "-22T"))
    )


def changed(found: list[CaseResult], change: Callable[[RunRecord], RunRecord]) -> list[CaseResult]:
    return [replace(result, rounds=tuple(change(record) for record in result.rounds)) for result in found]


def elsewhere(found: list[CaseResult], **where: object) -> list[CaseResult]:
    """The same on a machine that differs in ``where``."""
    return changed(
        found,
        lambda record: replace(record, environment=replace(record.environment, **where)),  # type: ignore[arg-type]
    )


def words(comparison: Comparison) -> set[str]:
    return {case.word for case in comparison.cases}


def first(comparison: Comparison) -> CaseComparison:
    return comparison.cases[0]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0, 3, "; after, rounds ran beside up to 3 other cases, and alone before"),
        (1, 0, "; before, rounds ran beside up to 1 other case, and alone after"),
        (2, 3, ""),
        (0, 0, ""),
        (None, 3, ""),
    ],
    ids=["after", "before", "both", "neither", "not known"],
)
def test_a_change_may_be_of_what_ran_beside(before: int | None, after: int, said: str) -> None:
    """The word stays: the interference test of each campaign allowed it."""
    found = compare(
        changed(results(), lambda record: replace(record, neighbours=before)),
        changed(results(factor=1.1), lambda record: replace(record, neighbours=after)),
    )
    alone = compare(results(), results(factor=1.1))
    assert words(found) == words(alone) == {"regression"}
    assert [case.reason for case in found.cases] == [case.reason + said for case in alone.cases]


def test_identical_sets_are_unchanged() -> None:
    found = compare(results(), results())
    assert (words(found), found.exit_code) == ({"unchanged"}, 0)
    change = first(found).change
    assert change is not None
    assert change.value == 0
    assert (found.only_before, found.only_after, found.noise) == ((), (), None)


def test_five_per_cent_slower_is_a_regression() -> None:
    found = compare(results(), next_day(results(factor=1.05)))
    assert (words(found), found.exit_code) == ({"regression"}, 1)
    change = first(found).change
    assert change is not None
    assert change.interval is not None
    assert change.value == pytest.approx(0.05)
    assert 0.04 < change.interval[0] < 0.05 < change.interval[1] < 0.06


def test_five_per_cent_faster_is_an_improvement() -> None:
    found = compare(results(factor=1.05), results())
    assert (words(found), found.exit_code) == ({"improvement"}, 0)
    assert first(found).reason == "faster, beyond 2.0% and the noise of the rounds"


def test_wide_noise_is_inconclusive() -> None:
    found = compare(results(NOISY), next_day(results(NOISY, factor=1.05)))
    assert (words(found), found.exit_code) == ({"inconclusive"}, 0)
    assert "more rounds would tell" in first(found).reason


def test_a_change_must_be_beyond_threshold_and_a_a_noise() -> None:
    slower = results(factor=1.05)
    assert compare(results(), slower, threshold=0.1).exit_code == 0
    assert words(compare(results(), slower, threshold=0.1)) == {"unchanged"}
    assert compare(results(), slower, noise=0.1).exit_code == 0
    assert compare(results(), slower, noise=0.01).exit_code == 1


def test_a_case_and_its_own_twin_are_within_their_noise_either_way_round() -> None:
    times_s = (1.0, 1.001, 1.002)
    case, twin = make_case(), make_case(variant="aa")
    for factor in (0.92, 1.09):
        pair = [make_result(case, *times_s), make_result(twin, *(factor * time_s for time_s in times_s))]
        as_case = [replace(pair[1], case=case, rounds=tuple(replace(one, case=case) for one in pair[1].rounds))]
        for before, after in ((pair[:1], as_case), (as_case, pair[:1])):
            noise = noise_budget(twin_pairs(pair))
            assert words(compare(before, after, noise=noise)) <= {"unchanged", "inconclusive"}
            assert words(compare(before, after, noise=0.05)) <= {"regression", "improvement"}


def test_nodes_that_reached_each_other_otherwise_are_another_thing() -> None:
    def over(word: Interconnect | None) -> list[CaseResult]:
        transport = word and Transport(library="nccl", between_nodes=(word,))
        return changed(results(), lambda record: replace(record, transport=transport))

    (found, _) = compare(over("infiniband"), over("ethernet")).cases
    assert [item.name for item in found.differences] == ["interconnect"]
    assert words(compare(over("infiniband"), over("ethernet"), across=["interconnect"])) == {"unchanged"}
    assert words(compare(over("infiniband"), over(None))) == {"unchanged"}  # older results do not say


def test_twins_give_the_noise_and_are_not_compared() -> None:
    twin = make_result(make_case(variant="aa"), *(1.08 * time_s for time_s in QUIET))
    found = compare([*results(), twin], results(factor=1.05))
    assert found.noise == pytest.approx(0.08)
    assert len(found.cases) == 2
    assert (found.only_before, found.exit_code) == ((), 0)


def test_pairing_sees_through_a_disturbance_of_both() -> None:
    slower = results(NOISY, factor=1.05)
    unpaired, paired = compare(results(NOISY), next_day(slower)), compare(results(NOISY), slower)
    assert (first(unpaired).pairing, unpaired.exit_code) == ("unpaired", 0)
    assert (first(paired).pairing, paired.exit_code) == ("paired", 1)


def test_two_rounds_are_inconclusive_however_slow() -> None:
    found = compare(results(QUIET[:2]), results(factor=3.0))
    assert (words(found), found.exit_code) == ({"inconclusive"}, 0)
    assert "2 and 5 rounds completed, and an interval needs 3" in first(found).reason


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


def test_a_case_that_fails_now_is_worse() -> None:
    failed = failed_result(make_case(), outcome="oom", reason="out of memory")
    found = compare(results()[:1], [failed])
    assert (words(found), found.exit_code) == ({"failed"}, 1)
    assert compare([failed], results()[:1]).exit_code == 0
    assert words(compare([failed], [failed])) == {"inconclusive"}


def test_cases_of_one_side_are_named_and_nothing_in_common_is_incomparable() -> None:
    one, two = results()
    assert compare([one, two], [one]).only_before == (two.case.case_id,)
    assert compare([one], [one, two]).only_after == (two.case.case_id,)
    assert compare([one], [two]).exit_code == 2


# --- the command -------------------------------------------------------------------------------------------------


@pytest.fixture
def before(tmp_path: Path) -> str:
    return str(write_results(results(), tmp_path / "before"))


def test_the_command_ends_with_the_exit_code(before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower = str(write_results(results(factor=1.05), tmp_path / "slower"))
    other = str(write_results(elsewhere(results(), asset_sha256="00" * 32), tmp_path / "other"))
    assert main([before, before]) == 0
    assert "Without an A/A run" in capsys.readouterr().out
    assert main([before, slower]) == 1
    assert "cartpole-strong/rsl_rl-kitless-cpu-n128-1x1: regression: slower" in capsys.readouterr().out
    assert main([before, slower, "--threshold", "10"]) == 0
    assert main([before, slower, "--noise", "10"]) == 0
    assert "A/A noise 10.0%" in capsys.readouterr().out
    assert main([before, other]) == 2
    assert f"  asset_sha256: '{'ab' * 32}' before, '{'00' * 32}' after" in capsys.readouterr().out


def test_the_command_says_everything_as_json(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([before, before, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 0
    assert [case["word"] for case in document["cases"]] == ["unchanged", "unchanged"]
    assert document["cases"][0]["change"]["value"] == 0


def test_mistakes_have_other_exit_codes_than_incomparable(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([before]) == UsageError.exit_code
    assert main([before, before, "--across", "task"]) == UsageError.exit_code
    assert main([before, before, "--threshold", "-1"]) == UsageError.exit_code
    assert main([before, str(tmp_path / "nothing")]) == StoreError.exit_code
    assert "holds no results" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_a_file_that_cannot_be_written_is_no_regression(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    for out, reason in ((tmp_path / "no" / "file", "No such file"), (tmp_path, "Is a directory")):
        assert main([before, before, form, "--out", str(out)]) == ReportError.exit_code
        said = capsys.readouterr().err
        assert said.startswith(f"{out} cannot be written: {reason}")
        assert "choose another with --out" in said


def test_a_file_needs_a_format(before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "comparison"
    assert main([before, before, "--out", str(out)]) == UsageError.exit_code
    assert "allowed are --json and --markdown" in capsys.readouterr().err
    assert not out.exists()
    assert main([before, before, "--markdown", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8")


def test_imported_results_are_not_called_corrupt(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Path(__file__).parent / "golden" / "isaaclab_1.4" / "upstream-seed42.json"
    assert import_command.main([str(bundle), "--out", str(tmp_path / "imported")]) == 0
    assert main([before, str(tmp_path / "imported")]) == StoreError.exit_code
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path / 'imported'} holds imported results only")
    assert "Move the file away" not in said
