"""The catalog, for the tests of matrix files."""

import pytest

from suite.matrix.catalog import Catalog, load_catalog


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()
