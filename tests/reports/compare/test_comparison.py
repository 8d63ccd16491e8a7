"""Configurations before and after a change: verdicts, and what makes two of them incomparable."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from reports.compare.comparison import DEFAULT_THRESHOLD, Compared, Comparison, compare, compare_packages
from reports.data.facts import OF_THE_MACHINE
from reports.sets.version import Version, read_version
from suite.errors import UsageError
from suite.schema.record import Case, CaseResult, Environment, Outcome, RunRecord, Scalar
from tests.fixtures.results.generated_machines import changed, elsewhere, with_settings
from tests.fixtures.results.generated_results import failed_result, make_case, make_record, make_result, write_results

QUIET = (1.0, 1.002, 1.004, 0.998, 1.001)
NOISY = (1.0, 1.2, 0.8, 1.1, 0.9)


def results(times_s: Sequence[float] = QUIET, *, factor: float = 1.0) -> list[CaseResult]:
    """Two configurations, each ``factor`` times ``times_s``."""
    cases = [make_case(world_size=ranks) for ranks in (1, 2)]
    return [make_result(case, *(factor * time_s / case.world_size for time_s in times_s)) for case in cases]


type Compare = Callable[..., Comparison]


@pytest.fixture
def compared(tmp_path: Path) -> Compare:
    def run(before: list[CaseResult], after: list[CaseResult], **options: Any) -> Comparison:
        sides = [
            read_version(write_results(side, tmp_path / name / str(len(list(tmp_path.rglob("cases"))))), name=name)
            for name, side in (("before", before), ("after", after))
        ]
        return compare(*sides, **{"threshold": DEFAULT_THRESHOLD, **options})

    return run


def words(comparison: Comparison) -> set[str]:
    return {own.word for own in comparison.configurations}


def first(comparison: Comparison) -> Compared:
    return comparison.configurations[0]


@pytest.mark.parametrize(
    ("before", "after", "threshold", "word", "exit_code"),
    [
        (results(), results(), 0.02, "unchanged", 0),
        (results(), results(factor=1.05), 0.02, "slower", 1),
        (results(factor=1.05), results(), 0.02, "faster", 0),
        (results(NOISY), results(NOISY, factor=1.05), 0.02, "within noise", 0),
        (results(), results(factor=1.05), 0.1, "unchanged", 0),
        (results(), results((1.0, 1.01, 1.02, 1.03)), 0.02, "within noise", 0),  # one end is beyond the threshold
        (results(QUIET[:1]), results(factor=3.0), 0.02, "too few runs", 0),
    ],
)
def test_a_change_has_a_verdict(
    compared: Compare, before: list[CaseResult], after: list[CaseResult], threshold: float, word: str, exit_code: int
) -> None:
    comparison = compared(before, after, threshold=threshold)
    assert (words(comparison), comparison.exit_code) == ({word}, exit_code)


def test_the_ratio_is_of_frames_after_over_before(compared: Compare) -> None:
    ratio = first(compared(results(), results(factor=1.05))).ratio
    assert ratio is not None
    assert ratio.interval is not None
    assert ratio.value == pytest.approx(1 / 1.05)
    assert ratio.interval[0] < 1 / 1.05 < ratio.interval[1]
    # By Welch: runs of equal numbers are of other minutes, so they are no pairs.
    ratio = first(compared(results(NOISY), results(NOISY))).ratio
    assert ratio is not None
    assert ratio.interval is not None
    assert ratio.interval[0] < 0.85


def with_crashes(completed: int, crashed: int, case: Case | None = None, time_s: float = 0.5) -> list[CaseResult]:
    case = case or make_case()
    rounds = (
        make_record(
            case,
            index=index,
            iteration_time_s=time_s,
            outcome="completed" if index < completed else "crashed",
            reason="x",
        )
        for index in range(completed + crashed)
    )
    return [CaseResult(case=case, rounds=tuple(rounds))]


@pytest.mark.parametrize(
    ("before", "after", "word", "exit_code", "reason"),
    [
        ((3, 0), (0, 1), "failed", 1, "1 of 1 runs failed after, 0 of 3"),
        ((3, 0), (1, 9), "failed", 1, "9 of 10 runs failed after, 0 of 3"),
        ((3, 0), (4, 7), "failed", 1, "7 of 11 runs failed after, 0 of 3"),
        ((4, 0), (4, 1), "unchanged", 0, "1 of 5 runs failed after, 0 of 4"),
        ((4, 7), (4, 7), "unchanged", 0, ""),
        ((0, 1), (3, 0), "too few runs", 0, ""),
        ((0, 1), (0, 1), "too few runs", 0, ""),
    ],
)
def test_runs_that_fail_now_are_not_passed_over(
    compared: Compare, before: tuple[int, int], after: tuple[int, int], word: str, exit_code: int, reason: str
) -> None:
    comparison = compared(with_crashes(*before), with_crashes(*after))
    assert (first(comparison).word, comparison.exit_code) == (word, exit_code)
    assert reason in first(comparison).reason
    assert ("failed after" in first(comparison).reason) is bool(reason)


@pytest.mark.parametrize(
    ("after", "word", "exit_code"),
    [((3, 0), "not timed", 0), ((3, 1), "not timed", 0), ((1, 3), "failed", 1), ((0, 1), "failed", 1)],
)
def test_of_runs_that_shared_their_gpu_only_outcomes_are_compared(
    compared: Compare, after: tuple[int, int], word: str, exit_code: int
) -> None:
    sides = [
        with_crashes(*numbers, case=make_case(device="cuda", only_learning=True), time_s=time_s)
        for numbers, time_s in (((3, 0), 0.5), (after, 5.0))
    ]
    own = first(comparison := compared(*sides))
    assert (own.word, comparison.exit_code) == (word, exit_code)
    assert (own.iteration_s, own.ratio, own.runs) == ((None, None), None, (3, after[0]))
    assert ("failed after" in own.reason) is bool(after[1])


@pytest.mark.parametrize("outcome", ["skipped", "lost"])
def test_a_configuration_that_had_no_place_is_not_compared(compared: Compare, outcome: Outcome) -> None:
    comparison = compared(
        results()[:1], [failed_result(make_case(), outcome=outcome, reason="needs 2 GPUs, available: 0")]
    )
    assert (words(comparison), comparison.exit_code) == ({"incomparable"}, 2)
    assert "needs 2 GPUs" in first(comparison).refused["outcome"][1]


def test_configurations_of_one_side_are_named_and_nothing_in_common_is_incomparable(compared: Compare) -> None:
    own, other = results()
    assert compared([own, other], [own]).only_before == [other.case.case_id]
    assert compared([own], [own, other]).only_after == [other.case.case_id]
    assert compared([own], [other]).exit_code == 2


# --- what makes two of them unlike ---


STATED = changed(
    with_settings(elsewhere(results(), driver_version="580.0"), cuda_graph=True),
    lambda record: replace(record, workload={"dt": 0.1}, image_digest="sha256:0"),
)


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("asset_sha256", elsewhere(STATED, asset_sha256="00" * 32)),
        ("driver_version", elsewhere(STATED, driver_version="999.0")),
        ("image_digest", changed(STATED, lambda record: replace(record, image_digest="sha256:1"))),
        ("versions.torch", with_settings(STATED, **{"versions.torch": "9.9"})),
        ("settings.cuda_graph", with_settings(STATED, cuda_graph=False)),
        ("workload.dt", changed(STATED, lambda record: replace(record, workload={"dt": 0.2}))),
    ],
)
def test_other_work_software_or_machines_are_refused(compared: Compare, name: str, after: list[CaseResult]) -> None:
    comparison = compared(STATED, after)
    assert (words(comparison), comparison.exit_code) == ({"incomparable"}, 2)
    assert (set(first(comparison).refused), first(comparison).ratio) == ({name}, None)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("task", "Isaac-Other"), ("num_envs", 64), ("minibatch_rule", "fixed_updates"), ("minibatch_size", 64),
        ("iterations", 64), ("overrides", ("agent.x=1",)),
    ],
)  # fmt: skip
def test_another_configuration_under_the_same_id_is_refused(compared: Compare, name: str, other: Any) -> None:
    after = make_result(replace(make_case(), **{name: other}), *QUIET)
    assert name in first(compared(results()[:1], [after])).refused


def test_names_and_places_are_no_difference(compared: Compare) -> None:
    after = elsewhere(results(), host_label="x", git_commit="0" * 40, git_dirty=True, memory_gb=1.0)
    comparison = compared(results(), with_settings(after, gpu_numa_node=1, cores_numa_nodes="1"))
    assert (words(comparison), first(comparison).unstated) == ({"unchanged"}, {})


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("driver_version", elsewhere(results(), driver_version="580.0")),
        ("versions.jax", with_settings(results(), **{"versions.jax": "9.9"})),
        ("settings.cuda_graph", with_settings(results(), cuda_graph=True)),
    ],
)
def test_what_one_side_alone_states_of_the_machine_is_named(
    compared: Compare, name: str, before: list[CaseResult]
) -> None:
    after = elsewhere(results(), driver_version=None)
    for sides in ((before, after), (after, before)):
        comparison = compared(*sides)
        assert (words(comparison), set(first(comparison).unstated)) == ({"unchanged"}, {name})
    assert first(compared(after, before, across=[name])).unstated == {}


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("workload.dt", changed(results(), lambda record: replace(record, workload={"dt": 0.1}))),
        ("settings.mps", with_settings(results(), mps=True)),
    ],
)
def test_work_that_one_side_alone_states_is_refused(compared: Compare, name: str, after: list[CaseResult]) -> None:
    before = results()
    for sides in ((before, after), (after, before)):
        comparison = compared(*sides)
        assert (words(comparison), set(first(comparison).refused)) == ({"incomparable"}, {name})
    some = [replace(own, rounds=(own.rounds[0], *other.rounds[1:])) for own, other in zip(before, after, strict=True)]
    assert first(compared(some, some)).refused.keys() == {name}
    none = [failed_result(own.case, outcome="crashed", reason="x") for own in before]
    assert words(compared(after, none)) == {"failed"}


def test_runs_that_differ_among_themselves_are_a_mixture(compared: Compare) -> None:
    def mixed(record: RunRecord) -> RunRecord:
        driver = "2" if record.round else "1"
        return replace(record, environment=replace(record.environment, driver_version=driver))

    both = changed(results(), mixed)
    assert first(compared(both, both)).refused == {"driver_version": ("1 or 2", "1 or 2")}


def test_a_declared_difference_is_shown(compared: Compare) -> None:
    before = elsewhere(results(), driver_version="580.0")
    after = elsewhere(results(), driver_version="999.0", kernel="7.0")
    assert first(compared(before, after, across=["driver_version"])).refused.keys() == {"kernel"}
    declared = compared(before, after, across=["driver_version", "kernel"])
    assert (declared.exit_code, set(first(declared).declared)) == (0, {"driver_version", "kernel"})


def test_every_fact_of_an_environment_is_compared_or_known_not_to_be() -> None:
    not_compared = {"host_label", "memory_gb", "git_commit", "git_dirty", "checks"}
    assert {item.name for item in fields(Environment)} == {*OF_THE_MACHINE, *not_compared, "asset_sha256", "gpus"}


# --- releases of one campaign ---

SHIPPED = make_case()


def measured(newton: str = "1.6.1", warp: str = "1.17.0", *, factor: float = 1.0, envs: int = 128) -> CaseResult:
    """A configuration with these versions, ``factor`` times as slow; those that are pinned are as shipped."""
    others = {"newton": (newton, "1.6.1"), "warp-lang": (warp, "1.17.0")}
    packages = tuple(f"{name}=={version}" for name, (version, pinned) in others.items() if version != pinned)
    case = replace(SHIPPED, num_envs=envs, num_envs_global=envs)
    if packages:
        name = "-".join(packages).replace("==", "-").replace(".", "-")
        case = replace(case, case_id=f"{case.case_id}-{name}", division="open", with_packages=packages)
    versions: dict[str, Scalar] = {"versions.newton": newton, "versions.warp-lang": warp}
    return with_settings([make_result(case, *(factor * time_s for time_s in QUIET))], **versions)[0]


def releases(tmp_path: Path, *stored: CaseResult) -> Version:
    return read_version(write_results(stored, tmp_path), name="releases")


def test_each_release_is_compared_with_the_pinned_one(tmp_path: Path) -> None:
    version = releases(tmp_path, measured("1.6.0", factor=1.2), measured(), measured(warp="1.18.0", factor=2.0))
    comparison = compare_packages(version, threshold=0.02, across=["versions.newton"])
    assert [own.configuration.removeprefix(SHIPPED.case_id) for own in comparison.configurations] == ["-newton-1-6-0"]
    assert (first(comparison).word, first(comparison).declared) == ("slower", {"versions.newton": ("1.6.1", "1.6.0")})
    assert len(compare_packages(version, threshold=0.02, across=["versions.*"]).configurations) == 2


def test_what_differs_besides_is_named_and_other_work_is_no_pair(tmp_path: Path) -> None:
    version = releases(tmp_path / "both", measured(), measured("1.6.0", "1.18.0"))
    comparison = compare_packages(version, threshold=0.02, across=["versions.newton"])
    assert (set(first(comparison).refused), comparison.exit_code) == ({"versions.warp-lang"}, 2)
    with pytest.raises(UsageError, match="No two"):
        compare_packages(
            releases(tmp_path / "other", measured(), measured("1.6.0", envs=256)), threshold=0.02, across=["versions.*"]
        )


def test_a_release_that_does_not_run_fails(tmp_path: Path) -> None:
    broken = failed_result(measured("1.7.0").case, outcome="crashed", reason="KeyError: 'path_particle_map'")
    comparison = compare_packages(releases(tmp_path, measured(), broken), threshold=0.02, across=["versions.newton"])
    assert (first(comparison).word, comparison.exit_code) == ("failed", 1)
