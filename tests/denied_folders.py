"""A folder that may not be read, also for root, whom no permission of a file keeps from anything."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def deny(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Neither list ``folder`` nor look at what is in it, as for another user's folder of mode 700."""

    def denying(function: Callable[..., Any], *, is_denied: Callable[[Path], bool]) -> Callable[..., Any]:
        def refuse_or_call(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            if isinstance(path, str | os.PathLike) and is_denied(Path(path)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *arguments, **options)

        return refuse_or_call

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, denying(getattr(os, name), is_denied=lambda path: path == folder))
    monkeypatch.setattr(os, "stat", denying(os.stat, is_denied=lambda path: folder in path.parents))
