"""What a campaign ends with in the terminal: tables, marks, how sure speeds are, and commands that lead on."""

import io
import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from reports.figures.lines import figure
from reports.figures.tables import runs_of
from reports.sets.version import read_version
from suite.campaign import steps
from suite.campaign.display.results import answers
from suite.campaign.state import Campaign, Sources
from suite.errors import ReportError
from suite.matrix.resources import Resources
from suite.options.command_line import LAUNCHER_VARIABLE
from suite.schema.observations import GpuTelemetry, Spread, TelemetrySummary
from suite.schema.record import Case, CaseResult, CheckResult
from tests.fixtures.results.generated_machines import changed
from tests.fixtures.results.generated_results import (
    CPU_HOST,
    GPU_HOST,
    failed_result,
    make_case,
    make_record,
    make_result,
    write_results,
)
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.simulated_campaign import campaign_of, printed
from tests.fixtures.runs.simulated_host import SimulatedHost

GOLDEN = Path(__file__).parents[3] / "golden" / "campaign"


def ended(results: Sequence[CaseResult], out: Path, *, encoding: str = "utf-8") -> str:
    """What is printed, without what is another each time."""
    raw = io.BytesIO()
    device = results[0].case.device
    campaign = Campaign(
        options=options_with(matrix="first" if device == "cuda" else "smoke", out=out, with_report=False),
        console=Console(file=io.TextIOWrapper(raw, encoding=encoding, write_through=True), width=160),
        machine=GPU_HOST if device == "cuda" else CPU_HOST,
        device=device,
        resources=Resources(nnodes=1, gpus_per_node=8, cpus_per_node=8),
        results=tuple(results),
        began_s=time.monotonic() - 192,
    )
    steps.build_report(steps.print_results(campaign))
    text = raw.getvalue().decode(encoding).replace(str(out), "OUT")
    return re.sub(r"This took 3:1[0-9]\.", "This took 3:12.", text)


def worked(case: Case, *features: str) -> CaseResult:
    record = make_record(case)
    checks = tuple(CheckResult(name=name, feature=name, verdict="ok", found="x", fault=None) for name in features)
    ranks = tuple(replace(rank, validity=checks) for rank in record.ranks)
    return CaseResult(case=case, rounds=(replace(record, ranks=ranks),))


SMOKE = [
    *(worked(make_case("ant-weak", world_size=ranks, scaling="weak"), "physics") for ranks in (1, 2)),
    worked(make_case("shadow-horizontal"), "physics", "cameras"),
    failed_result(make_case("shadow-horizontal", world_size=2), outcome="crashed", reason="RuntimeError: made up"),
]


SEEN = TelemetrySummary(
    window_start_unix_s=0.0, window_s=10.0, rate_hz=5.0, num_samples=50, gpus=(GpuTelemetry(index=0),),
    power_w=Spread(min=500.0, mean=612.4, max=700.0), frames_per_joule=1234.5,
)  # fmt: skip
SPREAD = (0.99, 1.0, 1.01, 1.0)


def ant(gpus: int, num_envs: int, time_s: float, spread: Sequence[float] = SPREAD) -> CaseResult:
    case = make_case("ant-weak", world_size=gpus, scaling="weak", num_envs_global=num_envs * gpus, device="cuda")
    return replace(make_result(case, *(time_s * factor for factor in spread)), ended_because="3 rounds were asked for")


ONE, FOUR = ant(1, 1024, 0.5, (1.0, 1.02, 0.98)), ant(4, 1024, 0.55, (1.0, 0.98, 1.02))
GPUS = [
    *changed([ONE], lambda record: replace(record, telemetry=SEEN)),
    *changed([FOUR], lambda record: replace(record, telemetry=replace(SEEN, power_w=None, frames_per_joule=None))),
]


def learning(ranks: int, *times_s: float) -> CaseResult:
    case = make_case("ant-weak", world_size=ranks, variant="learning", device="cuda", only_learning=True)
    (result,) = changed([make_result(case, *times_s)], lambda record: replace(record, telemetry=SEEN))
    return result


ALONE = learning(1, 0.5, 0.6)
FAILED = failed_result(ALONE.case, outcome="crashed", reason="RuntimeError: made up").rounds[0]
LEARNING = [replace(ALONE, rounds=(*ALONE.rounds, replace(FAILED, round=2))), learning(2, 0.7)]


@pytest.mark.parametrize(
    ("name", "results"),
    [("without_speeds.txt", SMOKE), ("with_speeds.txt", GPUS), ("only_learning.txt", LEARNING)],
)
def test_the_end_of_a_campaign_is_as_reviewed(name: str, results: Sequence[CaseResult], tmp_path: Path) -> None:
    """Marks, and speeds as details without a GPU; with GPUs times, power, answers with intervals and what is surer.

    Where only what is learned counts: rewards.
    """
    assert ended(results, tmp_path) == (GOLDEN / name).read_text(encoding="utf-8")


def test_rewards_are_those_of_the_report_and_no_time_or_power_of_a_run_that_shared_its_gpu_is_shown(
    tmp_path: Path,
) -> None:
    text = ended(LEARNING, tmp_path)
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(" ant-weak/")}
    version = read_version(write_results(LEARNING, tmp_path / "version"), name="v")
    for result, row, runs in zip(LEARNING, runs_of(version).configurations, ("2/3", "1/1"), strict=True):
        reward = figure(version, row, "last_reward")
        assert reward is not None
        shown = [str(result.case.world_size), "128", runs, f"{reward['value']:#.3g}"]
        assert rows[row["configuration"]][:4] == shown
    assert [word for word in ("s/iteration", "frames", " W ", "env_check") if word in text] == []


def test_a_terminal_without_unicode_has_words(tmp_path: Path) -> None:
    (row,) = (
        line for line in ended(SMOKE, tmp_path, encoding="latin-1").splitlines() if "Camera-Direct, rsl_rl" in line
    )
    assert re.split(r"\s*\|\s*|\s{2,}", row.strip(" |"))[1:] == ["1", "yes", "yes", "NO", "?"]


def test_who_came_without_nox_is_told_a_command_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAUNCHER_VARIABLE, "/opt/a b/labscale.sh")
    text = ended(GPUS, tmp_path)
    assert ": '/opt/a b/labscale.sh' bench --matrix first --out OUT --repeats 8\n" in text
    assert "python3 -m nox" not in text


NAME = "Isaac-Ant, rsl_rl"


@pytest.mark.parametrize(
    ("other", "times", "verdict"),
    [
        (ant(2, 1024, 1.1), "1.82 times those of 1,024 on 1 GPU (", ": at least 80 %."),
        (ant(2, 1024, 1.25), "1.6 times those of 1,024 on 1 GPU (", ": within noise of 80 %."),
        (ant(2, 1024, 1.5), "1.33 times those of 1,024 on 1 GPU (", ": below 80 %."),
        (ant(2, 1024, 1.1, [1.0]), "1.82 times those of 1,024 on 1 GPU, 90.", ": too few runs."),
        (ant(1, 2048, 1.5), "1.33 times those of 1,024 on 1 GPU (", "): faster."),
        (ant(1, 2048, 2.0), "1 times those of 1,024 on 1 GPU (", "): within noise."),
    ],
)
def test_every_configuration_has_its_ratio_to_the_smallest_and_a_verdict(
    other: CaseResult, times: str, verdict: str
) -> None:
    (_, sentence) = answers([other, ant(1, 1024, 1.0)])[NAME]
    assert times in sentence
    assert sentence.endswith(verdict)


def test_what_failed_or_has_several_nodes_has_no_sentence() -> None:
    lost = changed([ant(1, 1024, 1.0)], lambda record: replace(record, outcome="crashed", reason="x"))
    nodes = make_case("ant-weak", world_size=2, nnodes=2, scaling="weak", device="cuda")
    assert answers([*lost, make_result(nodes, *SPREAD)]) == {}


def probed(result: CaseResult, probes_s: Sequence[float]) -> CaseResult:
    records = []
    for record, probe_s in zip(result.rounds, probes_s, strict=True):
        (rank,) = record.ranks
        samples = {**rank.samples, "core_probe_time_s": (probe_s,) * record.case.iterations}
        records.append(replace(record, ranks=(replace(rank, samples=samples),)))
    return replace(result, rounds=tuple(records))


@pytest.mark.parametrize(
    ("power", "sentence"),
    [(1.0, "waits for one CPU core: a core twice as fast would make it up to 1.9 "), (0.0, "hardly limits")],
)
def test_how_far_a_training_waits_for_its_core(power: float, sentence: str) -> None:
    """A slope of 1 is pulled a little towards 0.5."""
    slowness = (1.0, 1.5, 2.0, 1.2, 1.7, 1.1, 1.9, 1.4)
    (_, core) = answers([probed(ant(1, 1024, 1.0, [slow**power for slow in slowness]), slowness)])[NAME]
    assert sentence in core


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return campaign_of(SimulatedHost(), [CASE], rounds=3, out=tmp_path / "a b")


CASE = make_case("ant-weak", scaling="weak")


def test_scripts_below_a_folder_with_a_space_are_commands_that_a_shell_takes(campaign: Campaign) -> None:
    runtime = replace(campaign.provided, write_script=lambda launch: Path(launch.run_dir, "job.sbatch"))
    steps.write_scripts(replace(campaign, runtime=runtime, sources=Sources(code={})))  # not compared for each script
    commands = [shlex.split(line) for line in printed(campaign).splitlines()]
    run_dir = campaign.out / "raw" / CASE.case_id
    assert commands == [["sbatch", str(run_dir / f"r{index}" / "job.sbatch")] for index in range(3)]


def test_a_page_that_could_not_be_built_has_a_command_that_leads_on(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the page's folder is taken, the same command would fail as this one did."""
    failed = subprocess.CompletedProcess[str](args=(), returncode=1, stdout="", stderr="no results")
    monkeypatch.setattr("suite.campaign.steps.parent_death.run", lambda *_, **__: failed)
    for is_taken in (False, True):
        if is_taken:
            (campaign.out / "report").mkdir(parents=True)
        with pytest.raises(ReportError, match="no results") as caught:
            steps.judge(steps.build_report(campaign))
        advice = str(caught.value).splitlines()[-1]
        assert advice.startswith(f"Try again with: nox -s report -- '{campaign.out}'")
        assert (" --out OTHER, " in advice) == is_taken
