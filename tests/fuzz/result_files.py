"""Files of a results folder, as ``bench`` and the ranks wrote them."""

from typing import Final

from tests.fuzz.target import Target

RESULT_FILES: Final[tuple[Target, ...]] = ()
