"""Asserts of the launchers' contract show their values, though it is no file of tests."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.contract")
