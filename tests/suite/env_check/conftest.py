"""What env_check reads of the machine that runs the tests, once for all tests, which replace parts of it."""

import os

import pytest

from suite.env_check.report import Machine, look
from suite.env_check.request import Request


@pytest.fixture(scope="session")
def this_machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Look at this machine, with a cache that has no worker, so that it is alike whatever was installed before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABSCALE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return look(Request(device="cpu"), os.environ)
