"""Does NCCL join the GPUs? Asked in the worker's Python (``tasks.nccl_probe``), in a process that may crash or hang."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from suite.env_check.check import Check, Verdict
from suite.env_check.gpu import nccl_paths
from suite.env_check.gpu.nccl_paths import PathTry
from suite.env_check.host.exists import is_there
from suite.external.program import ProgramRun, run_program

ROOT: Final = Path(__file__).resolve().parents[3]
TIMEOUT_S: Final = 120.0
RETRY_TIMEOUT_S: Final = 45.0  # torch is read from the disk by then; all tries end before a node's env_check has to
SAY_WHERE_S: Final = 10.0  # before the timeout, the probe writes where it stands
OUTPUT_CHARACTERS: Final = 4000  # of each
OF_A_PATH: Final = ("nccl_error", "nccl_crashed", "nccl_hung", "nccl_wrong_sum")  # faults that a broken path may have

ProbeError = Literal["no_torch", "no_cuda", "no_nccl", "nccl_error"]
Fault = Literal[
    "no_torch", "no_cuda", "no_nccl", "nccl_error", "nccl_crashed", "nccl_hung", "nccl_no_answer", "worker_missing",
    "worker_not_startable",
]  # fmt: skip


class NcclResult(BaseModel):
    """What ``tasks.nccl_probe`` measured."""

    model_config = ConfigDict(frozen=True)

    torch: str
    cuda: str | None
    nccl: str
    gpus: tuple[str, ...]
    peer_access: tuple[tuple[bool, ...], ...]  # from GPU to GPU
    is_sum_right: bool
    message_bytes: int
    times_s: tuple[float, ...]  # of each all-reduce
    bus_bandwidth_gb_s: float | None  # of the median; None for one GPU


class _Error(BaseModel):
    error: ProbeError
    message: str


@dataclass(frozen=True, kw_only=True)
class NcclFacts:
    """Evidence of ``nccl_all_reduce``: either ``result`` is there, or ``fault`` says why not."""

    python: str
    fault: (
        str | None
    )  # a word of ProbeError, or "worker_missing", "worker_not_startable", "crashed", "hung", "no_answer"
    message: str | None
    exit_code: int | None
    signal: str | None
    output: str  # the end of its standard output and error: NCCL's warnings
    wall_s: float | None
    result: Mapping[str, object] | None
    tries: tuple[PathTry, ...] = ()  # without the paths that may be broken

    @property
    def measured(self) -> NcclResult | None:
        return None if self.result is None else NcclResult.model_validate(self.result)

    @property
    def failed(self) -> str | None:
        """The fault, a wrong sum being one; None where NCCL works."""
        return "nccl_wrong_sum" if self.measured and not self.measured.is_sum_right else self.fault


def read(python: Path, *, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> NcclFacts:
    """Run the probe under the worker's Python."""
    if not is_there(python):
        return _facts(python, fault="worker_missing", message="the worker is not installed yet")
    with tempfile.TemporaryDirectory(prefix="labscale-nccl-") as folder:
        answer = Path(folder) / "answer.json"
        patience_s = str(max(timeout_s - SAY_WHERE_S, timeout_s / 2))
        run = run_program(
            (python, "-m", "tasks.nccl_probe", answer, "--patience-s", patience_s),
            environ={
                "NCCL_DEBUG": "WARN",
                **environ,
                "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), environ.get("PYTHONPATH")))),
            },
            timeout_s=timeout_s,
        )
        text = answer.read_text(encoding="utf-8") if answer.exists() else None
    return facts_of(python, run, text)


def try_paths(facts: NcclFacts, *, environ: Mapping[str, str], timeout_s: float = RETRY_TIMEOUT_S) -> NcclFacts:
    """Add what the probe does without peer-to-peer transfers and shared memory, where it failed with them."""
    if facts.failed not in OF_A_PATH:
        return facts

    def run(path: nccl_paths.Path) -> PathTry:
        variables = dict(text.split("=") for text in path.variables)
        again = read(Path(facts.python), environ={**environ, **variables}, timeout_s=timeout_s)
        measured = again.measured
        return PathTry(
            variables=path.variables,
            fault=again.failed,
            message=again.message,
            wall_s=again.wall_s,
            bus_bandwidth_gb_s=measured.bus_bandwidth_gb_s if measured else None,
        )

    return replace(facts, tries=nccl_paths.try_paths(environ, run))


def facts_of(python: Path, run: ProgramRun, answer: str | None) -> NcclFacts:
    """Say what the child's end and its answer, if it wrote one, mean."""
    if run.end == "not_started":
        return _facts(python, fault="worker_not_startable", message=run.stderr)
    if run.end == "hung":
        return _facts(python, run, fault="nccl_hung", message=f"no end in {run.wall_s:.0f} s")
    if run.end == "died":
        return _facts(python, run, fault="nccl_crashed", message=f"{run.signal}: {_last_words(run)}")
    try:
        if run.exit_code == 0:
            result = NcclResult.model_validate_json(answer or "")
            return _facts(python, run, result=result)
        error = _Error.model_validate_json(answer or "")
    except ValidationError:
        return _facts(python, run, fault="nccl_no_answer", message=f"exit code {run.exit_code}: {_last_words(run)}")
    return _facts(python, run, fault=error.error, message=error.message)


def _last_words(run: ProgramRun) -> str:
    """NCCL's last warning, else Python's word for its death, else the last line."""
    lines = [line.strip() for line in (*run.stdout.splitlines(), *run.stderr.splitlines()) if line.strip()]
    for mark in ("NCCL WARN", "Fatal Python error", ""):
        if fitting := [line for line in lines if mark in line]:
            return fitting[-1]
    return "no message"


def _facts(
    python: Path, run: ProgramRun | None = None, *, fault: Fault | None = None, message: str | None = None,
    result: NcclResult | None = None,
) -> NcclFacts:  # fmt: skip
    return NcclFacts(
        python=str(python),
        fault=fault,
        message=message,
        exit_code=run.exit_code if run else None,
        signal=run.signal if run else None,
        output=run.stdout[-OUTPUT_CHARACTERS:] + run.stderr[-OUTPUT_CHARACTERS:] if run else "",
        wall_s=run.wall_s if run else None,
        result=result.model_dump() if result else None,
    )


_REPAIRS: Final = {
    "no_torch": "Install the worker again, or pass a Python that has torch to --worker-python.",
    "worker_not_startable": "Pass a Python that runs to --worker-python, or remove the worker and run bench again.",
    "no_cuda": "Repair what the driver's checks say; a torch built for the CPU (CUDA None) must be replaced.",
    "no_nccl": "Use a torch that is built with NCCL: the worker of the pins is.",
    "nccl_error": "Read the message; NCCL_DEBUG=INFO says more. Often: small /dev/shm, or no memory left on a GPU.",
    "nccl_crashed": "Read its last words; NCCL_DEBUG=INFO says more. The driver may be too old for torch's CUDA.",
    "nccl_no_answer": "Read its last words in the evidence; run python -m tasks.nccl_probe /tmp/answer.json by hand.",
    "nccl_hung": "Look for Xid errors in dmesg; NCCL_DEBUG=INFO says where it stands, nvidia-smi topo -m the links.",
    "nccl_wrong_sum": "Look for Xid errors in dmesg, at nvidia-smi -q -d ECC, and at PCIe ACS and the IOMMU.",
}


def check_nccl_all_reduce(facts: NcclFacts, *, num_gpus: int) -> Check[NcclFacts]:
    """``num_gpus``: those that NVML shows and CUDA_VISIBLE_DEVICES leaves."""
    verdict: Verdict = "failure"
    fault: str | None = facts.fault
    found, repair = facts.message or "", None
    if path := nccl_paths.broken_path(facts.tries):
        fault, repair = path.fault, path.repair
        found = found or "wrong sum"
    elif facts.measured is not None:
        verdict, fault, found, repair = _judge(facts.measured, num_gpus)
    elif num_gpus == 0:
        verdict, fault, found = "not_checked", None, "no GPU"
    elif facts.fault == "worker_missing":
        verdict, fault = "not_checked", None
    else:
        repair = _REPAIRS[facts.fault or "nccl_no_answer"]
    return Check(
        name="nccl_all_reduce",
        feature="nccl",
        verdict=verdict,
        found=found + nccl_paths.described(facts.tries),
        wanted=f"the right sum over {num_gpus} GPU(s), with peer access",
        fault=fault,
        repair=repair,
        evidence=facts,
    )


def _judge(result: NcclResult, num_gpus: int) -> tuple[Verdict, str | None, str, str | None]:
    """Verdict, fault, found, repair of a probe that ended."""
    bandwidth = result.bus_bandwidth_gb_s
    speed = f", bus bandwidth {bandwidth:.1f} GB/s at {result.message_bytes / 2**20:.0f} MiB" if bandwidth else ""
    found = f"NCCL {result.nccl} over {len(result.gpus)} GPU(s){speed}"
    if not result.is_sum_right:
        return "failure", "nccl_wrong_sum", f"wrong sum, {found}", _REPAIRS["nccl_wrong_sum"]
    if len(result.gpus) != num_gpus:
        repair = "CUDA and NVML disagree: look at CUDA_VISIBLE_DEVICES, MIG, /dev/nvidia* and dmesg."
        return "failure", "nccl_gpus_missing", f"{found}, but NVML shows {num_gpus}", repair
    if not all(access for row in result.peer_access for access in row):
        repair = (
            "Data goes through the host's memory. Look at nvidia-smi topo -p2p r; in a virtual machine ask its host."
        )
        return "warning", "no_peer_access", f"{found}; no peer access between some GPUs", repair
    return "ok", None, found, None
