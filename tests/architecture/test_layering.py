"""The architecture, as tests: which file may import what, and that nothing names what it must not."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from suite.launch.registry import LAUNCHERS, MANIFESTS

ROOT = Path(__file__).resolve().parents[2]

# What reports may import of suite besides its formats and statistics -> why. At most four.
REPORTS_EXCEPTIONS = {
    "suite.options": "one command line parser for all commands",
    "suite.matrix": "what a stored case was planned as, and learning references of the catalog",
    "suite.external.parent_death": "the process that runs the pages' cells ends with the command",
    "suite.campaign.runs.upstream": "reads the pairs with Isaac Lab's own benchmark",
}
# Path prefix -> what it may import besides the standard library. The longest prefix wins.
ALLOWED = {
    "suite/schema/record.py": {"suite.schema.stored", "suite.schema.observations"},
    "suite/schema/observations.py": {"suite.schema.stored"},
    "suite/schema/rank_protocol.py": {"suite.schema.record", "suite.schema.stored"},
    "suite/schema/stored.py": set[str](),
    "suite/errors.py": set[str](),
    "suite/files/wording.py": set[str](),
    "suite/external/core_probe.py": set[str](),
    "suite/external/parent_death.py": set[str](),
    "suite/": {"suite", "pydantic", "pydantic_core", "rich", "psutil", "packaging", "_typeshed"},
    "suite/external/nvml/": {"suite", "pynvml"},
    "suite/install/pins.py": {"suite", "uv", "packaging"},
    "suite/replay/": {"suite", "pytest", "pytest_benchmark"},
    "suite/install/install_bundle.py": set[str](),
    "suite/launch/nodes/node.py": {"suite.schema.rank_protocol"},  # in the worker environment
    "tasks/": {
        "suite.schema.rank_protocol", "suite.schema.record", "suite.schema.observations",
        "suite.errors", "suite.external.core_probe", "suite.external.parent_death",
        "tasks", "torch", "isaaclab", "isaaclab_rl", "isaaclab_tasks", "warp",
        "rsl_rl", "rl_games", "skrl", "jax", "stable_baselines3", "torchrl", "tensordict", "lerobot",
        "gymnasium", "mujoco_warp", "newton", "pxr", "PIL", "psutil",
    },
    "reports/": {
        "suite.schema", "suite.statistics", "suite.errors", "suite.records", "suite.files", "suite.__version__",
        "reports", *REPORTS_EXCEPTIONS,
    },
    "reports/display/charts/": {"reports", "suite.statistics", "altair"},
    # A fault that both share would be invisible, so the verifier shares nothing with what makes the figures but how
    # files are found and read, and the list of figures: which there are, and of which runs.
    "reports/verification/": {
        "reports.verification", "numpy", "pydantic", "suite.files", "suite.records.folders", "suite.errors",
    },
    "reports/verification/runs.py": {"reports.verification.finding", "numpy"},
    "reports/verification/kinds.py": {"reports.verification.runs", "numpy"},
    "reports/verification/figures.py": {"reports.verification", "reports.figures.tables", "suite.files"},
    # Nor does it say again what a file of the format is, and what words in it mean: the loader of all reports refuses
    # other files.
    "reports/verification/stored.py": {
        "reports.verification", "suite.files", "suite.records.folders", "suite.records.validation",
        "suite.campaign.runs.upstream", "suite.statistics.reduce.ROUND_STATISTIC",
    },
    "reports/verification/samples.py": {
        "reports.verification", "numpy", "suite.schema.rank_protocol.FIRST_ITERATIONS",
        "suite.records.telemetry.AGREEMENT", "suite.records.telemetry.THROTTLING",
    },
    "reports/verification/command.py": {
        "reports.verification", "reports.sets.file_errors", "suite.errors", "suite.options.command_line",
        "suite.files", "suite.records.folders",
    },
}  # fmt: skip
# One file knows each foreign tool, and these files the libraries of figures.
EXTRA = {
    "suite/external/docker_engine.py": {"docker", "requests"},
    "suite/external/ray_cluster.py": {"ray"},
    "suite/records/telemetry.py": {"numpy"},
    "suite/statistics/machine_model.py": {"numpy"},
    "suite/statistics/series_model.py": {"numpy"},
    "suite/launch/images/build.py": {"cyclonedx", "packageurl"},
    "suite/env_check/libraries.py": {"elftools"},
    "suite/env_check/probes/vulkan.py": {"wgpu"},
    "suite/env_check/probes/egl.py": {"moderngl"},
    "tasks/film/camera.py": {"isaaclab_newton"},
    "tasks/film/filming.py": {"isaaclab_visualizers"},
    "reports/data/frames.py": {"polars"},
    "reports/figures/compare.py": {"polars"},
    "reports/figures/coverage.py": {"numpy"},
    "reports/figures/kinds.py": {"polars"},
    "reports/figures/published.py": {"pydantic"},
    "reports/figures/tables.py": {"polars"},
    "reports/display/figure.py": {"vl_convert"},
    "reports/compare/comparison.py": {"polars"},
    "reports/compare/text.py": {"rich"},
    "reports/accept/command.py": {"rich"},
    "reports/accept/judgement.py": {"polars"},
    "reports/accept/parts.py": {"polars"},
    "reports/accept/published.py": {"polars"},
    "reports/site/book.py": {"nbformat", "jupytext", "vl_convert"},
    "reports/site/cells.py": {"nbformat"},
    "reports/sets/manifest.py": {"pydantic"},
    "reports/submit/privacy.py": {"detect_secrets"},
    "reports/submit/pull_request.py": {"polars"},
}
# Packages of suite, from the ground up: none imports from one above it.
FLOORS = (
    "schema", "errors", "files", "external", "statistics", "replay", "matrix", "options", "records", "install",
    "env_check", "launch", "campaign", "commands", "__main__",
)  # fmt: skip
# Packages of reports likewise.
REPORTS_FLOORS = (
    "sets", "data", "figures", "verification", "export", "accept", "display", "compare", "pages",
    "site", "submit", "__main__",
)  # fmt: skip
FILES = sorted(path for folder in ("suite", "tasks", "reports") for path in (ROOT / folder).rglob("*.py"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def imported_modules(path: Path) -> set[str]:
    """Every absolute module name that ``path`` imports."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def forbidden_imports(relative: str, imported: set[str]) -> set[str]:
    """Names that the file at this path of the checkout imports and must not."""
    allowed = ALLOWED[max((prefix for prefix in ALLOWED if relative.startswith(prefix)), key=len)]
    allowed = allowed | EXTRA.get(relative, set())
    return {
        name
        for name in imported
        if name.split(".")[0] not in sys.stdlib_module_names
        and not any(f"{name}.".startswith(f"{module}.") for module in allowed)
    }


def test_imports_follow_the_layering() -> None:
    """Each file is named with what it may not import; ``ALLOWED`` and ``EXTRA`` say what it may."""
    assert forbidden_imports("suite/matrix/plan.py", {"torch.cuda", "suite.schema.record"}) == {"torch.cuda"}
    forbidden = {
        relative: names
        for path in FILES
        if (names := forbidden_imports(relative := path.relative_to(ROOT).as_posix(), imported_modules(path)))
    }
    assert forbidden == {}
    tops = {name: {module.split(".")[0] for module in imported_modules(ROOT / name)} for name in EXTRA}
    assert {name: unused for name in EXTRA if (unused := EXTRA[name] - tops[name])} == {}


def from_above(relative: str, imported: set[str]) -> set[str]:
    """Names that a file imports from a package of its own half, ``suite`` or ``reports``, above its own package."""
    half, package, *_ = relative.removesuffix(".py").split("/")
    floors = FLOORS if half == "suite" else REPORTS_FLOORS
    above = floors[floors.index(package) + 1 :]
    return {name for name in imported if name.startswith(f"{half}.") and name.split(".")[1] in above}


def test_no_package_imports_from_above() -> None:
    names = (path.relative_to(ROOT).as_posix() for path in FILES)
    unchecked = ("tasks/", "suite/__init__.py", "reports/__init__.py")
    checked = (name for name in names if not name.startswith(unchecked))
    assert {name: above for name in checked if (above := from_above(name, imported_modules(ROOT / name)))} == {}
    assert from_above("suite/files/cache.py", {"suite.launch.native", "suite.errors.StoreError"}) == {
        "suite.launch.native"
    }
    assert from_above("reports/sets/version.py", {"reports.display.html"}) == {"reports.display.html"}


def launcher_names_compared(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of launchers that code compares something with, or has a ``match`` for."""
    compared = (node for node in nodes if isinstance(node, ast.Compare | ast.MatchValue))
    constants = (part.value for node in compared for part in ast.walk(node) if isinstance(part, ast.Constant))
    return {value for value in constants if isinstance(value, str) and value in {*LAUNCHERS, *MANIFESTS}}


def test_only_a_launchers_folder_asks_for_it_by_name() -> None:
    """Everything else asks its entry in the registry what it can do."""
    compared = {
        path.relative_to(ROOT).as_posix(): names
        for path in FILES
        if path.parent.parent != ROOT / "suite" / "launch" and (names := launcher_names_compared(nodes_of(path)))
    }
    assert compared == {"suite/env_check/nodes.py": {"ssh"}}  # a program's name
    assert launcher_names_compared(ast.walk(ast.parse('if options.launcher in ("slurm", "x"): ...'))) == {"slurm"}


def test_files_of_campaigns_and_results_are_read_by_the_reader_of_regular_files() -> None:
    """``suite.files.input_file``: any other read may hang at a pipe."""
    raw = re.compile(r"\.read_(?:bytes|text)\(|\.open\(\"r")
    folders = ("suite/campaign/", "suite/records/", "suite/commands/", "reports/sets/", "reports/verification/")
    readers = [path.relative_to(ROOT).as_posix() for path in FILES if raw.search(path.read_text())]
    assert [name for name in readers if name.startswith(folders)] == [
        "reports/sets/version.py",  # what the process that started this one wrote
    ]


def tracked_texts() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    binary = {".png", ".gif", ".svg", ".ico", ".mp4", ".jpg"}
    return [ROOT / name for name in done.stdout.split("\0") if name and Path(name).suffix not in binary]


def test_no_registry_host_and_no_machine_path_is_named() -> None:
    # Split, so that this file passes its own test.
    hosts = ("py" + "pi.org", "files.python" + "hosted.org", "registry." + "npm" + "js.org", "deb." + "debian.org")
    paths = ("/ro" + "ot/", "/ho" + "me/")
    named = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in tracked_texts()
        if path.exists()
        for word in (*hosts, *paths)
        if word in path.read_text(errors="replace")
    ]
    assert not named
