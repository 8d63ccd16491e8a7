"""Suffixes of case ids that labscale adds itself."""

from typing import Final

# Of rounds that belong to no case of a matrix:
WARM_UP_SUFFIX: Final = "-warm-up"
ALONE_SUFFIX: Final = "-alone"  # a copy whose rounds run alone, beside its original in turns
# Of cases of a matrix:
COLD_SUFFIX: Final = "-cold"  # its rounds begin with an empty kernel cache
