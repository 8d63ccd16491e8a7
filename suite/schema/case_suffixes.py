"""Suffixes of case ids that labscale adds itself, for rounds that belong to no case of a matrix."""

from typing import Final

PROBE_SUFFIX: Final = "-packing"  # the interference test's own rounds
BESIDE_SUFFIX: Final = "-beside"  # rounds of the campaign that ran at the same time, if that was then not allowed
WARM_UP_SUFFIX: Final = "-warm-up"
ALONE_SUFFIX: Final = "-alone"  # a copy whose rounds run alone, beside its original in turns
