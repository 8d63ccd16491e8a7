"""Every target."""

from typing import Final

from tests.fuzz.input_files import INPUT_FILES
from tests.fuzz.result_files import RESULT_FILES
from tests.fuzz.target import Target

TARGETS: Final[tuple[Target, ...]] = (*INPUT_FILES, *RESULT_FILES)
