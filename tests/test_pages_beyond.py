"""The tables and the page of curves carried further."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reports import beyond_tables
from reports.curves_beyond import Curve, curves_of
from reports.interconnects import read_interconnects
from reports.pages import beyond as page
from reports.result_sets import read_version
from suite.env_check.gpu.nccl import NcclFacts, check_nccl_all_reduce
from suite.schema.record import CaseResult, CheckResult
from tests.committed_results import committed_version
from tests.generated_curves import series
from tests.generated_results import write_results


def carried_curve(results: Sequence[CaseResult]) -> Curve:
    (curve,) = curves_of(results, read_interconnects())
    return curve


def test_the_tables_call_every_value_what_it_is() -> None:
    curve = carried_curve(series(lambda _: 0.5, scaling="weak"))
    rows = [line.split("\t") for line in beyond_tables.points(curve, label="x").text.splitlines()[1:]]
    assert [row[:2] for row in rows[:4]] == [[str(count), "measured"] for count in (1, 2, 4, 8)]
    assert [row[1] for row in rows[4:]] == ["predicted"] * 7
    assert all(" to " in cell for row in rows[4:] for cell in row[2:])
    (row,) = beyond_tables.stops([curve], label="x").text.splitlines()[1:]
    assert row.count("over 1024 (predicted") == len(curve.carried)


def test_a_law_that_no_curve_has_points_for_is_named_below_the_table() -> None:
    """Its column made the table wider than a desk and said n/a in every row."""
    curve = carried_curve(series(lambda _: 0.5, scaling="weak"))
    headings, *rest = beyond_tables.validation([curve], label="x").text.splitlines()
    assert headings.split("\t")[6:] == ["In band", "Gustafson off by", "universal scalability law off by"]
    assert rest[-1] == "Fitted to none of these curves without its largest count: Amdahl."
    assert len(rest[0].split("\t")) == len(headings.split("\t"))


def test_notes_name_what_a_curve_lacks() -> None:
    notes = " ".join(beyond_tables.model_notes(carried_curve(series(lambda _: 0.5, scaling="weak"))))
    assert "gradient is not stored" in notes
    few = series(lambda _: 0.5, scaling="weak", counts=(1, 2))
    notes = " ".join(beyond_tables.model_notes(carried_curve(few)))
    assert "could not be checked, because without its largest count, 2, one is left" in notes
    assert "one count was measured" not in notes  # two were


def test_what_env_check_says_of_bandwidth_is_understood() -> None:
    facts = NcclFacts(
        python="python",
        fault=None,
        message=None,
        exit_code=0,
        signal=None,
        output="",
        wall_s=1.0,
        result={
            "torch": "2.11.0",
            "cuda": "13.0",
            "nccl": "2.28.9",
            "gpus": ["GPU", "GPU"],
            "peer_access": [[True, True], [True, True]],
            "is_sum_right": True,
            "message_bytes": 2**28,
            "times_s": [0.001],
            "bus_bandwidth_gb_s": 225.0,
        },
    )
    check = check_nccl_all_reduce(facts, num_gpus=2)
    stored = CheckResult(name=check.name, feature="nccl", verdict=check.verdict, found=check.found, fault=check.fault)
    table = beyond_tables.links([("host", stored)], read_interconnects())
    assert table is not None
    (row,) = (line.split("\t") for line in table.text.splitlines()[1:])
    assert row[:5] == ["host", "2", "256 MiB", "225 GB/s", "450 GB/s"]
    assert row[5] == "-50 %"
    assert beyond_tables.links([("host", replace(stored, found="no GPU"))], read_interconnects()) is None


def test_the_page_carries_scaling_alone_and_names_each_set_once() -> None:
    """Of results in git, which have a sweep and tuned series too."""
    version = committed_version()
    kinds = {name: version.kind(name) for name in version.series_names}
    assert set(kinds.values()) == {"scaling", "sweep", "tuned"}
    found = page.curves(version)
    assert {kinds[curve.group.series] for _, those in found for curve in those} == {"scaling"}
    for line in page.missing(found).text.splitlines():
        names = [one.title for one in version.scaling if one.title in line]
        assert names
        assert [line.count(f"({name})") for name in names] == [1] * len(names), line


def test_lags_of_the_same_curve_in_two_sets_say_which_set_they_are_of(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_results(series(lambda _: 0.5, scaling="weak"), tmp_path / name)
    lines = page.lags(page.curves(read_version(tmp_path, name="v"))).text.splitlines()
    (curve,) = {line.split("\t")[0] for line in lines if "%" in line}
    assert [line for line in lines if line in ("first", "second")] == ["first", "second"]
    assert sum(line.startswith(curve + "\t") for line in lines) == len(("first", "second"))


def test_the_size_of_a_gradient_may_be_known_from_another_set(tmp_path: Path) -> None:
    curve = series(lambda _: 0.5, scaling="weak", counts=(1, 2, 4))
    sized = replace(curve[1], case=replace(curve[1].case, series="other", case_id="other/any-1x2", device="cpu"))
    column = (1e6 * sized.case.optimiser_steps,) * sized.case.iterations
    ranks = [replace(rank, samples={**rank.samples, "all_reduce_bytes": column}) for rank in sized.rounds[0].ranks]
    rounds = tuple(replace(record, case=sized.case, ranks=tuple(ranks)) for record in sized.rounds)
    write_results(curve, tmp_path / "gpus")
    alone = page.curves(read_version(tmp_path, name="v"))
    write_results([replace(sized, rounds=rounds)], tmp_path / "cpu")
    (tmp_path / "report.toml").write_text('[[set]]\nfolder = "gpus"\n[[set]]\nfolder = "cpu"\nrole = "learning"\n')
    known = page.curves(read_version(tmp_path, name="v"))
    assert ["the size of its gradient is not stored" in page.missing(found).text for found in (alone, known)] == [
        True,
        False,
    ]
    last = [found[0][1][0].carried[0].points[-1].total_fps for found in (alone, known)]
    assert last[1] < last[0]
