"""What the rounds of a case took, and for what; inference counts to the rest of the rollout. Pure."""

import math
from functools import cached_property

from reports.verification.figures.iteration_parts import Shares, mean_shares
from reports.verification.samples.case_file import StoredCase


class PartsOfRounds:
    """By round where lists are; ``names``: the parts that every round has."""

    def __init__(self, stored: StoredCase) -> None:
        self.case = stored.case
        self.times_s = [*stored.published_s.values()]
        self.names = {*_without_inference(mean_shares(stored.completed))}
        self.shares = [shares for record in stored.completed if (shares := _without_inference(mean_shares([record])))]

    def share(self, part: str) -> float:
        return sum(shares.get(part, 0.0) for shares in self.shares) / len(self.shares)

    @cached_property
    def log_mean_s(self) -> float:
        return sum(map(math.log, self.times_s)) / len(self.times_s)

    def varied(self, part: str, factor: float) -> list[float]:
        """Return each round's share, plus its part of ``factor`` as far as its time is longer than the mean."""
        longer = [math.log(time_s) - self.log_mean_s for time_s in self.times_s]
        return [shares.get(part, 0.0) + factor * log for shares, log in zip(self.shares, longer, strict=True)]


def _without_inference(shares: Shares) -> Shares:
    inference = shares.pop("infer", 0.0)
    return {part: share + (inference if part == "other" else 0.0) for part, share in shares.items()}
