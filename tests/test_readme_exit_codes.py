"""The README's table of exit codes is what the errors say of themselves."""

import inspect
import re
from pathlib import Path

from suite import errors

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def test_the_readme_has_every_exit_code_and_its_meaning() -> None:
    kinds = [kind for kind in errors.LabscaleError.__subclasses__() if kind.__module__ == errors.__name__]
    assert kinds
    said = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.+) \|$", README, flags=re.MULTILINE)}
    assert said == {kind.exit_code: (inspect.getdoc(kind) or "").splitlines()[0] for kind in kinds}
