"""Suffixes of case ids that labscale adds itself."""

from typing import Final

# Of rounds that belong to no case of a matrix:
PROBE_SUFFIX: Final = "-packing"  # the interference test's own rounds
BESIDE_SUFFIX: Final = "-beside"  # rounds of the campaign that ran at the same time, if that was then not allowed
WARM_UP_SUFFIX: Final = "-warm-up"
ALONE_SUFFIX: Final = "-alone"  # a copy whose rounds run alone, beside its original in turns
# Of cases of a matrix:
COLD_SUFFIX: Final = "-cold"  # its rounds begin with an empty kernel cache
