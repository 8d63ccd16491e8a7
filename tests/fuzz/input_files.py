"""Files that users write or carry over: matrices and the catalog."""

import random
from pathlib import Path
from typing import Final

from suite.cases import expand
from suite.catalog import CATALOG_PATH, Catalog, load_catalog
from suite.matrix import MATRICES_PATH, load_matrix
from suite.plan import plan
from tests.fuzz.mutations import mutate_toml
from tests.fuzz.target import Target


def read_matrix(rng: random.Random, folder: Path) -> None:
    """``plan`` of a mutated matrix."""
    source = rng.choice(sorted(MATRICES_PATH.glob("*.toml")))
    path = folder / "matrix.toml"
    path.write_bytes(mutate_toml(rng, source.read_text(encoding="utf-8")))
    plan_all(path, load_catalog())


def plan_all(matrix: str | Path, catalog: Catalog) -> None:
    cases = expand(load_matrix(matrix, catalog), catalog, device="cuda", assets="offline")
    plan(
        cases,
        gpus_available=8,
        cpus_available=64,
        nnodes_available=2,
        device="cuda",
        available_stacks=("kitless", "ovphysx"),
        rounds=3,
        catalog=catalog,
    )


def read_catalog(rng: random.Random, folder: Path) -> None:
    """A mutated catalog, and a matrix expanded by it."""
    path = folder / "catalog.toml"
    path.write_bytes(mutate_toml(rng, CATALOG_PATH.read_text(encoding="utf-8")))
    plan_all(rng.choice(("smoke", "physx", "open")), load_catalog(path))


INPUT_FILES: Final[tuple[Target, ...]] = (
    Target(name="matrix", attempt=read_matrix),
    Target(name="catalog", attempt=read_catalog),
)
