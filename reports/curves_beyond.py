"""Every curve of a campaign with what ``reports.beyond`` says of it over every assumed network. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reports.beyond import BOUNDS, FREE, Carried, HeldOutCount, carry, hold_out
from reports.interconnects import Interconnects
from reports.iteration_model import Model, Network, NotCarried, calibrated, gradient_sizes, model_of
from reports.scaling_groups import ScalingGroup, scaling_groups
from suite.schema.record import CaseResult

FREE_NAME: Final = "free network"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """``carried`` has one entry for each network, the last for one that takes no time; none without a model."""

    group: ScalingGroup
    model: Model | NotCarried
    carried: tuple[Carried, ...]
    held_out: HeldOutCount | NotCarried

    @property
    def name(self) -> str:
        return f"{self.group.series}: {self.group.curve}"


def curves_of(
    results: Sequence[CaseResult], interconnects: Interconnects, *, elsewhere: Iterable[CaseResult] = ()
) -> tuple[Curve, ...]:
    """Of the cases that train.

    ``elsewhere``: results that may know sizes of gradients where these do not; they are the same on any machine.
    """
    by_id = {result.case.case_id: result for result in results}
    gradients = {**gradient_sizes(elsewhere), **gradient_sizes(results)}
    networks = networks_of(interconnects)
    first = networks[interconnects.network[0].name]  # one node's links are the same with every network
    found = []
    for group in scaling_groups([result for result in results if result.case.learns]):
        model = model_of(group, by_id, gradients)
        held_out = hold_out(group, by_id, gradients, first)
        carried: tuple[Carried, ...] = ()
        if isinstance(model, Model):
            model = calibrated(model, by_id, first["expected"])
            miss = held_out.miss if isinstance(held_out, HeldOutCount) else 0.0
            carried = tuple(carry(model, name, network, miss=miss) for name, network in networks.items())
        found.append(Curve(group=group, model=model, carried=carried, held_out=held_out))
    return tuple(found)


def networks_of(interconnects: Interconnects) -> dict[str, Network]:
    """By name, the free one last."""
    networks: dict[str, Network] = {
        network.name: {bound: interconnects.links(network, bound) for bound in BOUNDS}
        for network in interconnects.network
    }
    return {**networks, FREE_NAME: dict.fromkeys(BOUNDS, FREE)}
