from pathlib import Path

import pytest

from reports.collectives import Bound
from reports.interconnects import PATH, read_interconnects
from suite.errors import ReportError


def test_every_assumption_has_a_public_source() -> None:
    found = read_interconnects()
    assert all(source.url and source.url.startswith("https://") for source in found.source)
    used = {name for link in (found.node, *found.network) for name in link.sources}
    assert used == {source.name for source in found.source}


def test_rates_and_latencies_become_si_units() -> None:
    found = read_interconnects()
    for network in found.network:
        bits_per_s = network.gigabits_per_s * 1e9 * network.ports_per_node
        assert found.links(network, "expected").between_bytes_per_s * 8 == bits_per_s
        bounds: tuple[Bound, ...] = ("low", "expected", "high")
        hops = [found.links(network, bound).ring_between_s for bound in bounds]
        assert hops == [
            pytest.approx(latency_us / 1e6)
            for latency_us in (network.ring_us.ll, network.ring_us.ll128, network.ring_us.simple)
        ]
        assert hops == sorted(hops)


def test_networks_stand_from_the_quickest_to_the_slowest() -> None:
    """The figure draws the first and the last."""
    networks = read_interconnects().network
    rates = [network.bytes_per_s for network in networks]
    assert rates == sorted(rates, reverse=True)
    assert [network.tree_us.ll128 for network in networks] == sorted(network.tree_us.ll128 for network in networks)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('bandwidth_source = "mlperf"', 'bandwidth_source = "hearsay"', "no [[source]] is named hearsay"),
        ("gigabits_per_s = 400.0", "gigabits_per_s = 0.0", "greater than 0"),
        ("gigabits_per_s = 400.0", "gigabits = 400.0", "gigabits"),
        ("[node]", "[node", "not valid"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = PATH.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "interconnects.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ReportError, match=said.replace("[", r"\[")):
        read_interconnects(path)
