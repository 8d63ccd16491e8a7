"""Which cases do the same in an iteration, whatever they are called, whatever seed and for however long. Pure."""

from collections.abc import Hashable
from typing import Any, Final

from reports.verification.finding import Json

_SAYS_NOTHING: Final = {
    "case_id", "series", "scaling", "timeout_s", "hang_timeout_s", "seed", "seed_per_round", "iterations",
}  # fmt: skip
_OLDER: Final[Json] = {  # what a case is that was stored before there was such a field
    "presets": [], "overrides": [], "workload": "train", "division": "closed", "cpu_threads": None, "pin_cpus": False,
    "seed_per_round": False, "deterministic": False, "trainings_per_gpu": 1, "kernel_cache": "kept",
    "with_packages": [],
}  # fmt: skip


def full(case: Json) -> Json:
    """Return the case with all fields."""
    return {**_OLDER, **case}


def work_of(case: Json, **changes: Any) -> Hashable:
    """Return what is equal for two cases whose iterations do the same; ``changes`` as if the case had these."""
    whole = {**full(case), **changes}
    return tuple((name, repr(whole[name])) for name in sorted(whole.keys() - _SAYS_NOTHING))
