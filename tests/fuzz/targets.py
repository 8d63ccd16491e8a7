"""Every target."""

from typing import Final

from tests.fuzz.command_lines import COMMAND_LINES
from tests.fuzz.input_files import INPUT_FILES
from tests.fuzz.result_files import RESULT_FILES
from tests.fuzz.target import Target
from tests.fuzz.variables import VARIABLE_TARGETS

TARGETS: Final[tuple[Target, ...]] = (*INPUT_FILES, *COMMAND_LINES, *VARIABLE_TARGETS, *RESULT_FILES)
