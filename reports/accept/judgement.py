"""A machine judged: each of its cases and parts among those of published machines with the same GPU model. Pure.

The cases decide; if no run of a case completed, nothing is accepted. Series with cold starts have too few iterations to
say how fast a machine is, so they are left out. Times of an iteration are compared at the speed of this machine's
cores: every run is adjusted by how far the work's time goes with the core probe between machines. How fast the cores
are is a part of its own. A case whose interval may hide a machine that is a fifth slower is open.

A part says where a slow machine loses its time: it is slow if it is slow in at least half of the cases of which that
can be said.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

from reports.accept.parts import PARTS, Part, Placed, Word, placed
from reports.accept.published import IS_COMPLETED, KEYS, Measured, other_versions
from suite.files.wording import counted
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.machine_model import MachineModel, MachineRuns
from suite.statistics.reduce import WINDOW
from suite.statistics.series_model import PRIOR_SLOPE

MOST: Final = 0.5
HERE: Final = ""  # in place of the host
type Answer = Literal["accepted", "slow", "cannot say"]
type Log = tuple[float, float | None]  # logarithms of the time of an iteration and of the core probe, of a run
EXIT_CODES: Final[Mapping[Answer, int]] = {"accepted": 0, "slow": 1, "cannot say": 2}


@dataclass(frozen=True, kw_only=True)
class JudgedCase:
    """A case with its time of an iteration in s. ``reason``: why it is open; empty if it is not."""

    row: Mapping[str, Any]  # its first completed run
    time: Placed
    parts: Mapping[str, Placed]  # by name of the part; without parts that no run of this machine has
    reason: str = ""

    @property
    def name(self) -> str:
        return str(self.row["configuration"])

    @property
    def word(self) -> Word:
        """The verdict on its time, but open if its interval may hide a slow machine."""
        return "open" if self.reason else self.time.word


@dataclass(frozen=True, kw_only=True)
class JudgedPart:
    """A part in all cases that have it."""

    part: Part
    cases: Mapping[str, Placed]  # by case id

    @property
    def decided(self) -> Mapping[str, Placed]:
        return {case_id: case for case_id, case in self.cases.items() if case.word != "open"}

    @property
    def word(self) -> Word:
        words = Counter(case.word for case in self.decided.values())
        if not words:
            return "open"
        likely: Word
        for likely in ("slow", "fast"):
            if words[likely] >= MOST * words.total():
                return likely
        return "within"

    @property
    def is_mostly_above(self) -> bool:
        """Whether its value is above the slowest machine's in at least half of the cases, sure or not."""
        above = [case.value.value > max(case.others.values()) for case in self.decided.values()]
        return bool(above) and sum(above) >= MOST * len(above)

    @property
    def worst(self) -> tuple[str, Placed] | None:
        """The case in which it is furthest above the slowest machine; of those that can be judged, if any can.

        Of equal ones it is the first by its id.
        """
        cases = self.decided or {case_id: case for case_id, case in self.cases.items() if case.others}
        return max(sorted(cases.items()), key=lambda item: item[1].over_slowest, default=None)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """``drivers``: of this machine; ``published_drivers``: how many published machines have which."""

    model: str
    machines: tuple[str, ...]  # of that model
    cases: tuple[JudgedCase, ...]
    failed: tuple[str, ...]  # ids of cases that began and of which no run completed
    parts: tuple[JudgedPart, ...]
    drivers: tuple[str, ...]
    published_drivers: Mapping[str, int]

    def with_word(self, *words: Word) -> tuple[JudgedCase, ...]:
        return tuple(case for case in self.cases if case.word in words)

    @property
    def answer(self) -> Answer:
        if self.with_word("slow"):
            return "slow"
        return "accepted" if self.with_word("within", "fast") and not self.failed else "cannot say"

    @property
    def grown(self) -> tuple[JudgedPart, float] | None:
        """The part in which slow cases lose most, and its mean share of what they lose; None if no part grew."""
        slow = {case.name: case.time.added for case in self.with_word("slow") if case.time.added}
        shares = []
        for part in (part for part in self.parts if part.part.kind == "time"):
            losses = [(own.added, slow[name]) for name, own in part.cases.items() if name in slow]
            known = [added / lost for added, lost in losses if added is not None]
            if known:
                shares.append((part, statistics.fmean(known)))
        most = max(shares, key=lambda pair: pair[1], default=None)
        return most if most and most[1] > 0 else None


def judge(own: Measured, published: Measured, model: str) -> Judgement:
    """Judge the completed configurations of a machine among the other published ones with GPUs of ``model``."""
    published, completed = published.others(own).of_model(model), own.runs.filter(IS_COMPLETED)
    by_name = completed.partition_by("configuration", maintain_order=True)
    iterations = pl.concat([*own.iterations, *published.iterations])
    cases, known = tuple(_judged(runs, published, iterations) for runs in by_name), set(completed["configuration"])
    drivers = published.runs.select("host", "driver").drop_nulls().unique()["driver"].to_list()
    return Judgement(
        model=model,
        machines=tuple(published.runs["host"].unique(maintain_order=True)),
        cases=cases,
        failed=tuple(name for name in dict.fromkeys(own.runs["configuration"]) if name not in known),
        parts=tuple(
            JudgedPart(
                part=part, cases={judged.name: judged.parts[part.name] for judged in cases if part.name in judged.parts}
            )
            for part in PARTS
        ),
        drivers=tuple(sorted(set(completed["driver"].drop_nulls()))),
        published_drivers=Counter(sorted(drivers)),
    )


def _judged(own: pl.DataFrame, published: Measured, iterations: pl.DataFrame) -> JudgedCase:
    row = own.row(0, named=True)
    others = published.comparable(row)
    runs = pl.concat([own.with_columns(host=pl.lit(HERE)), others])
    time = _at_own_core_speed(runs, iterations)
    reason = _why_open(own, others, published) if time.word == "open" else ""
    if time.hides is not None:
        reason = f"it may be up to {time.hides:.0%} slower than the median machine; run it again with more --repeats"
    parts = {part.name: place for part in PARTS if (place := _placed_part(part, runs))}
    return JudgedCase(row=row, time=time, parts=parts, reason=reason)


def _at_own_core_speed(runs: pl.DataFrame, iterations: pl.DataFrame) -> Placed:
    """The times of an iteration, over the iterations that all runs have, at the mean speed of this machine's cores."""
    logs: dict[str, list[Log]] = {}
    for host, log_time, log_probe in _logs(runs, iterations).iter_rows():
        logs.setdefault(host, []).append((log_time, log_probe))
    own = logs.pop(HERE)
    own_probes, slope = _probes(own), _slope(list(logs.values()))

    def adjusted(of_host: Sequence[Log]) -> list[float]:
        probes = _probes(of_host)
        if own_probes is None or probes is None:
            return [math.exp(log_time) for log_time, _ in of_host]
        core = statistics.fmean(own_probes)
        return [math.exp(log[0] + slope * (core - probe)) for log, probe in zip(of_host, probes, strict=True)]

    return placed(adjusted(own), {host: adjusted(of_host) for host, of_host in logs.items()})


def _logs(runs: pl.DataFrame, iterations: pl.DataFrame) -> pl.DataFrame:
    """The host and the ``Log`` of each run.

    As ``suite.statistics.series_model.run_time`` has them, in the window of the run with the fewest iterations.
    Several trainings on a GPU have their own windows.
    """
    own = iterations.join(runs.select(KEYS), on=KEYS).unique([*KEYS, "process", "iteration"])
    fewest = min(own.group_by(KEYS).agg(pl.col("iteration").max())["iteration"].to_list()) + 1
    within = own.filter(pl.col("iteration").is_between(max(1, fewest - math.floor(WINDOW * fewest)), fewest - 1))
    slowest = within.group_by(*KEYS, "iteration").agg(
        pl.col("iteration_time_s").max(), (pl.col("marked").first().fill_null(0.0) > 0).alias("marked")
    )
    plain = slowest.filter(~pl.col("marked") | pl.col("marked").all().over(KEYS))
    times = plain.group_by(KEYS).agg(pl.col("iteration_time_s").mean())
    of_processes = within.group_by(*KEYS, "process").agg(pl.col("core_probe_time_s").log().mean().alias("log_probe"))
    probe = pl.col("log_probe")
    probes = of_processes.group_by(KEYS).agg(pl.when(probe.null_count() == 0).then(probe.mean()))
    alone = pl.when(pl.col("trainings_per_gpu") == 1).then(pl.col("iteration_time_s"))
    every = runs.join(times, on=KEYS, maintain_order="left").join(probes, on=KEYS, maintain_order="left")
    return every.select("host", pl.coalesce(alone, "iteration_s").log(), "log_probe")


def _probes(of_host: Sequence[Log]) -> list[float] | None:
    """The logarithm of the core probe of each run; None if a run has none."""
    probes = [probe for _, probe in of_host if probe is not None]
    return probes if probes and len(probes) == len(of_host) else None


def _slope(machines: Sequence[Sequence[Log]]) -> float:
    """How far log times of machines go with their log probes, from 0 to 1."""
    probed = [
        MachineRuns(label="", gpu="", runs=tuple(zip((log_time for log_time, _ in logs), probes, strict=True)))
        for logs in machines
        if (probes := _probes(logs)) is not None
    ]
    return min(1.0, max(0.0, MachineModel(probed).likely_slope)) if probed else PRIOR_SLOPE


def _placed_part(part: Part, runs: pl.DataFrame) -> Placed | None:
    """Runs in turns start together, so their starts take longer, and are compared with their like alone.

    None if no run of this machine has the value.
    """
    if part.kind == "start":
        runs = runs.filter(pl.col("block").is_null() == pl.col("block").first().is_null())
    values: dict[str, list[float]] = {}
    for host, value in runs.select("host", part.value).drop_nulls().iter_rows():
        values.setdefault(host, []).append(value)
    return placed(values.pop(HERE), values) if HERE in values else None


def _why_open(own: pl.DataFrame, others: pl.DataFrame, published: Measured) -> str:
    if not others.is_empty():
        return f"{counted(len(own), 'run')} completed, and {MIN_ROUNDS_FOR_INTERVAL} are needed"
    row = own.row(0, named=True)
    same = published.runs.filter(pl.col("work") == row["work"])
    if same.is_empty():
        return "no other published machine ran it"
    number, versions = counted(same["host"].n_unique(), "machine"), other_versions(row["versions"], same["versions"][0])
    return f"{number} ran it with other versions: {', '.join(versions)}"
