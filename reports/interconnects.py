"""What is assumed of networks that were not measured, from ``interconnects.toml``. Reading it is the only I/O."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from reports.collectives import Bound, Links
from reports.published import Source, Strict
from suite.errors import ReportError

PATH: Final = Path(__file__).with_name("interconnects.toml")

type _Positive = Annotated[float, Field(gt=0)]


class Latency(Strict):
    """Microseconds of one hop by NCCL's protocols."""

    ll: _Positive
    ll128: _Positive
    simple: _Positive

    def seconds(self, bound: Bound) -> float:
        return {"low": self.ll, "expected": self.ll128, "high": self.simple}[bound] / 1e6


class _Link(Strict):
    name: str
    ring_us: Latency
    tree_us: Latency
    bandwidth_source: str
    latency_sources: tuple[str, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([self.bandwidth_source, *self.latency_sources]))


class Node(_Link):
    gpus: Annotated[int, Field(ge=1)]
    gigabytes_per_s: _Positive  # of a GPU, in one direction

    @property
    def bytes_per_s(self) -> float:
        return self.gigabytes_per_s * 1e9


class Network(_Link):
    gigabits_per_s: _Positive  # of a port, in one direction
    ports_per_node: Annotated[int, Field(ge=1)]

    @property
    def bytes_per_s(self) -> float:
        """Of a node."""
        return self.gigabits_per_s * self.ports_per_node * 1e9 / 8


class Interconnects(Strict):
    source: tuple[Source, ...]
    node: Node
    network: tuple[Network, ...]

    def links(self, network: Network, bound: Bound) -> Links:
        """Latencies at one end of their range, or expected."""
        return Links(
            gpus_per_node=self.node.gpus,
            ring_within_s=self.node.ring_us.seconds(bound),
            tree_within_s=self.node.tree_us.seconds(bound),
            within_bytes_per_s=self.node.bytes_per_s,
            ring_between_s=network.ring_us.seconds(bound),
            tree_between_s=network.tree_us.seconds(bound),
            between_bytes_per_s=network.bytes_per_s,
        )


@cache
def read_interconnects(path: Path = PATH) -> Interconnects:
    """Raises ReportError when the file is not valid, or names a source that it does not have."""
    try:
        found = TypeAdapter(Interconnects).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ReportError(f"{path} is not valid: {error}. Correct it; its head says what it holds.") from error
    known = {source.name for source in found.source}
    unknown = sorted({name for link in (found.node, *found.network) for name in link.sources} - known)
    if unknown:
        raise ReportError(f"{path}: no [[source]] is named {', '.join(unknown)}. Add it, with where it is from.")
    return found
