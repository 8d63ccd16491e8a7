"""Ends of case ids that labscale adds itself: rounds that measure the host, and no case of a matrix."""

from typing import Final

PROBE_SUFFIX: Final = "-packing"  # of the interference test's own rounds
BESIDE_SUFFIX: Final = "-beside"  # of rounds of the campaign that ran beside them, where that was then not allowed
WARM_UP_SUFFIX: Final = "-warm-up"
