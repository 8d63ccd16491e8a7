"""Whether cases run side by side at all: where there is room, and where the test of it is worth its time."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign.packing import run as packed
from suite.campaign.packing.order import Forecast
from suite.campaign.tables import print_forecast
from suite.options.options import Options
from suite.schema.record import Case, PlannedCase
from tests.asked_options import options_with
from tests.generated_results import make_case
from tests.simulated_campaign import NARROW, PAIR, WIDE, assert_apart, campaign_of, is_probe, records, run_all, said
from tests.simulated_host import SimulatedHost

pytestmark = pytest.mark.usefixtures("plain_case_files")


def test_a_campaign_without_room_beside_its_cases_says_so(tmp_path: Path) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host, [WIDE], rounds=2)
    run_all(campaign, tmp_path)
    assert "One after another: no case leaves room for another beside it." in said(campaign)
    assert [each.launch.round for each in host.ran] == [0, 1]
    assert not (tmp_path / "packing.json").exists()


def test_a_short_campaign_is_not_made_longer_by_a_test(tmp_path: Path) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host, rounds=1, pack=False)
    run_all(campaign, tmp_path)
    assert "One after another: packing would save about 4:00, and the test whether it may takes 7:30" in said(campaign)
    assert not any(each.beside for each in host.ran)
    assert_apart(host.ran)


def test_a_forecast_says_what_packing_saves_and_what_its_test_costs() -> None:
    campaign = campaign_of(SimulatedHost(), NARROW[:4], rounds=2)  # a minute each, since nothing is known
    expected = packed.forecast(campaign)
    assert expected == Forecast(alone_s=480, packed_s=120, test_s=450, refused_s=(360, 720))
    print_forecast(campaign.console, expected, num_slots=4)
    assert "about 2:00 instead of 8:00, and 7:30 to test that. Should they, the test costs 6:00 to 12:00 more." in said(
        campaign
    )


def test_a_test_without_neighbours_gives_no_verdict(tmp_path: Path) -> None:
    host = SimulatedHost()
    campaign = campaign_of(host, NARROW[:2], rounds=1)
    run_all(campaign, tmp_path)
    assert "One after another: too few rounds are left to test it with." in said(campaign)
    assert not (tmp_path / "packing.json").exists()
    assert [record.neighbours for record in records(tmp_path)] == [0, 0]


@pytest.mark.parametrize(
    ("options", "num_cpus", "why"),
    [
        (options_with(matrix="smoke", pack=False), 8, "--no-pack asks for it"),
        (options_with(matrix="smoke", launcher="apptainer"), 8, "--launcher apptainer cannot give rounds GPUs"),
        (options_with(matrix="smoke"), 3, "there are too few cores, 3, to share out over 4 GPUs"),
    ],
)
def test_a_host_that_is_not_shared_out_is_told_why(options: Options, num_cpus: int, why: str) -> None:
    shared = campaign_of(SimulatedHost())
    slots = packed.slots_of(options, device="cuda", num_gpus=4, num_cpus=num_cpus, cores=range(num_cpus))
    machine = replace(shared.machine, num_cpus=num_cpus)
    found = packed.why_not_shared(replace(shared, options=options, slots=slots, machine=machine))
    assert found is not None
    assert found.startswith(why)
    assert packed.why_not_shared(shared) is None
    assert packed.why_not_shared(replace(shared, options=options, slots=(), machine=machine, device="cpu")) is None


def test_the_quickest_of_the_narrowest_cases_is_measured_and_the_first_where_nothing_is_known() -> None:
    def planned(case: Case, wall_s: float | None) -> PlannedCase:
        return PlannedCase(case=case, rounds=3, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=wall_s)

    slow, quick, unknown = (planned(case, wall_s) for case, wall_s in zip(NARROW, (67.0, 30.0, None), strict=False))
    pair = planned(PAIR, 10.0)
    twin = planned(replace(NARROW[4], case_id=f"{NARROW[4].case_id}-aa"), 5.0)
    assert packed.baseline([slow, pair, unknown, quick, twin], num_slots=4) is quick
    assert packed.baseline([unknown, slow], num_slots=4) is slow
    first = planned(NARROW[3], None)
    assert packed.baseline([first, unknown, pair], num_slots=4) is first
    assert packed.baseline([pair], num_slots=2) is None


@pytest.mark.parametrize(("ant_s", "is_worth_it"), [(67.0, False), (30.0, True)])
def test_a_quick_case_makes_the_test_worth_its_time(tmp_path: Path, ant_s: float, *, is_worth_it: bool) -> None:
    """Cartpole strong and Ant weak on 1, 2 and 4 GPUs, three rounds each, as `plan` expects them of an H200."""
    host = SimulatedHost()
    strong = [make_case("cartpole-strong", world_size=size, device="cuda") for size in (1, 2, 4)]
    weak = [make_case("ant-weak", world_size=size, device="cuda", scaling="weak") for size in (1, 2, 4)]
    campaign = campaign_of(host, [*strong, *weak], rounds=3, pack=False)
    walls_s = (67.0, 46.0, 39.0, ant_s, ant_s, ant_s)
    campaign = replace(
        campaign,
        planned=tuple(
            replace(item, estimated_wall_s=wall_s) for item, wall_s in zip(campaign.planned, walls_s, strict=True)
        ),
    )
    run_all(campaign, tmp_path / "out")
    assert any(is_probe(each) for each in host.ran) == is_worth_it
