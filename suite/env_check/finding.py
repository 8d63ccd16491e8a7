"""One thing that is wrong, in the words that a check needs."""

from dataclasses import dataclass

from suite.env_check.check import Check, Feature, Verdict


@dataclass(frozen=True, kw_only=True)
class Finding:
    word: str  # stable: the check's ``fault``
    found: str
    repair: str

    def check[Evidence](
        self, *, name: str, feature: Feature, wanted: str, evidence: Evidence, verdict: Verdict = "failure"
    ) -> Check[Evidence]:
        """The check that reports this."""
        return Check(
            name=name,
            feature=feature,
            verdict=verdict,
            found=self.found,
            wanted=wanted,
            fault=self.word,
            repair=self.repair,
            evidence=evidence,
        )
