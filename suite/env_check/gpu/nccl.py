"""Checks that NCCL sums correctly over all GPUs, and finds the broken path between them if it does not.

The worker's Python runs ``tasks.nccl_probe`` in its own process, which may crash or hang. CUDA may offer a path between
GPUs that carries no data. NCCL then hangs, fails or sums wrongly, and training reports "Watchdog caught collective
operation timeout", "an illegal memory access was encountered" or "unhandled system error". So NCCL runs again without
peer-to-peer transfers, shared memory, both, and NVLS.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from suite.env_check.check import Judgement, Subject
from suite.env_check.container import is_there
from suite.external.program import ProgramRun, run_program
from suite.files.paths import ROOT, import_path

TIMEOUT_S: Final = 120.0
RETRY_TIMEOUT_S: Final = 40.0  # torch is in the disk cache by then; all tries fit into a node's timeout
SAY_WHERE_S: Final = 10.0  # the probe writes its stack this long before the timeout
OUTPUT_CHARACTERS: Final = 4000  # kept of standard output and of standard error
OF_A_PATH: Final = ("nccl_error", "nccl_crashed", "nccl_hung", "nccl_wrong_sum")  # faults that a broken path may cause

ProbeError = Literal["no_torch", "no_cuda", "no_nccl", "nccl_error"]
NcclFault = Literal[
    "no_torch", "no_cuda", "no_nccl", "nccl_error", "nccl_crashed", "nccl_hung", "nccl_no_answer", "worker_missing",
    "worker_not_startable",
]  # fmt: skip
P2P_OFF: Final = "NCCL_P2P_DISABLE=1"
SHM_OFF: Final = "NCCL_SHM_DISABLE=1"
NVLS_OFF: Final = "NCCL_NVLS_ENABLE=0"
_EXPORT: Final = "before env_check and bench (in containers: a line of /etc/nccl.conf)"
_P2P_CAUSES: Final = (
    "the IOMMU or PCIe ACS is on (bare metal: iommu=pt or off for the kernel, ACS off in the BIOS), a virtual machine's"
    " PCIe is virtualised, or the GPUs are consumer models without P2P (nvidia-smi topo -p2p w)"
)


@dataclass(frozen=True, kw_only=True)
class GpuPath:
    """A path between GPUs that NCCL can work without."""

    fault: str  # the fault if NCCL works only without this path
    variables: tuple[str, ...]
    what: str
    instead: str  # how the data then goes, why the path may be broken, and what training says

    def repair(self, environ: Mapping[str, str], shm_repair: str | None) -> str:
        """Return the next step: the variables that ``environ`` lacks. ``shm_repair``: what /dev/shm needs, if anything.

        A repair never names what is set already, so /dev/shm is a cause only if it is too small or full.
        """
        other = "something else than /dev/shm, which is large enough: a limit of the container or its cgroup"
        return f"export {' '.join(unset(self, environ))} {_EXPORT}. {self.instead.format(shm=shm_repair or other)}"


PATHS: Final = (
    GpuPath(
        fault="nccl_p2p_broken",
        variables=(P2P_OFF,),
        what="peer-to-peer transfers between GPUs are broken",
        instead=f"Data then goes through the host's memory, which is slower. Usual causes: {_P2P_CAUSES}. Training"
        " says: Watchdog caught collective operation timeout, or CUDA error: an illegal memory access was encountered.",
    ),
    GpuPath(
        fault="nccl_shm_broken",
        variables=(SHM_OFF,),
        what="NCCL's shared memory is broken",
        instead="GPUs without peer access then exchange data through sockets and the host's memory, which is slower."
        " Usual cause: {shm}. Training says: unhandled system error (ncclSystemError), or Error while creating shared"
        " memory segment /dev/shm/nccl-.",
    ),
    GpuPath(
        fault="nccl_p2p_and_shm_broken",
        variables=(P2P_OFF, SHM_OFF),
        what="peer-to-peer transfers and NCCL's shared memory are broken",
        instead=f"Data then goes through sockets and the host's memory, the slowest way. Usual causes: {_P2P_CAUSES};"
        " and {shm}.",
    ),
    GpuPath(
        fault="nccl_nvls_broken",
        variables=(NVLS_OFF,),
        what="NVLink SHARP (NVLS), with which NVSwitch reduces, is broken",
        instead="GPUs then reduce without NVSwitch, which is slower. Usual cause: the Fabric Manager started again"
        " without a reset of the GPUs, or has another version than the driver. On the host, with nobody on the GPUs:"
        " sudo systemctl stop nvidia-fabricmanager, sudo nvidia-smi -r, sudo systemctl start nvidia-fabricmanager.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class PathTry:
    """The result of one probe without a path."""

    variables: tuple[str, ...]
    fault: str | None  # None: the sum was right
    message: str | None
    wall_s: float | None
    bus_bandwidth_gb_s: float | None


def unset(path: GpuPath, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables of ``path`` that ``environ`` does not set to their values."""
    pairs = [text.partition("=") for text in path.variables]
    return tuple(f"{name}={value}" for name, _, value in pairs if environ.get(name) != value)


def broken_path(tries: tuple[PathTry, ...]) -> GpuPath | None:
    """Return the path without which NCCL works; None if no path was tried, or none is the cause."""
    if not tries or tries[-1].fault is not None:
        return None
    return next(path for path in PATHS if path.variables == tries[-1].variables)


def describe_tries(tries: tuple[PathTry, ...]) -> str:
    """Return the result of the tries as the end of a sentence; empty without tries."""
    if not tries:
        return ""
    last, path = tries[-1], broken_path(tries)
    if path is None:
        return f"; nor does it work with {', with '.join(' '.join(attempt.variables) for attempt in tries)}"
    speed = f" ({last.bus_bandwidth_gb_s:.1f} GB/s)" if last.bus_bandwidth_gb_s else ""
    return f"; it works with {' '.join(last.variables)}{speed}, so {path.what}"


@dataclass(frozen=True, kw_only=True)
class NcclResult:
    """The measurements of ``tasks.nccl_probe``."""

    torch: str
    cuda: str | None
    nccl: str
    gpus: tuple[str, ...]
    peer_access: tuple[tuple[bool, ...], ...]  # from GPU to GPU
    is_sum_right: bool
    message_bytes: int
    times_s: tuple[float, ...]  # one for each all-reduce
    bus_bandwidth_gb_s: float | None  # from the median time; None for one GPU


@dataclass(frozen=True, kw_only=True)
class _Error:
    error: ProbeError
    message: str


@dataclass(frozen=True, kw_only=True)
class NcclFacts:
    """Evidence of ``nccl_all_reduce``: either ``result`` is set, or ``fault`` says why it is None."""

    python: str
    fault: NcclFault | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    output: str = ""  # the end of its standard output and error: NCCL's warnings
    wall_s: float | None = None
    result: NcclResult | None = None
    tries: tuple[PathTry, ...] = ()  # retries, each without the paths that may be broken
    variables: Mapping[str, str] = field(default_factory=dict)  # of NCCL, as the user set them

    @property
    def failed(self) -> str | None:
        """The fault, which may be a wrong sum; None if NCCL works."""
        return "nccl_wrong_sum" if self.result and not self.result.is_sum_right else self.fault


def read_nccl(python: Path, *, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> NcclFacts:
    """Run the probe with the worker's Python."""
    if not is_there(python):
        return NcclFacts(python=str(python), fault="worker_missing", message="the worker is not installed yet")
    with tempfile.TemporaryDirectory(prefix="labscale-nccl-") as folder:
        answer = Path(folder) / "answer.json"
        patience_s = str(max(timeout_s - SAY_WHERE_S, timeout_s / 2))
        run = run_program(
            (python, "-m", "tasks.nccl_probe", answer, "--patience-s", patience_s),
            environ={"NCCL_DEBUG": "WARN", **environ, **import_path(ROOT, environ.get("PYTHONPATH"))},
            timeout_s=timeout_s,
        )
        text = answer.read_text(encoding="utf-8") if answer.exists() else None
    variables = {name: value for name, value in environ.items() if name.startswith("NCCL_")}
    return replace(facts_of(python, run, text), variables=variables)


def try_paths(facts: NcclFacts, *, environ: Mapping[str, str], timeout_s: float = RETRY_TIMEOUT_S) -> NcclFacts:
    """Run the probe again without each path in turn until it works, if it failed, and add the results."""
    if facts.failed not in OF_A_PATH:
        return facts

    tries: list[PathTry] = []
    tried: list[tuple[str, ...]] = [()]
    for path in PATHS:
        if unset(path, environ) in tried:  # the user has set it, or it was tried already
            continue
        tried.append(unset(path, environ))
        without = dict(text.split("=") for text in path.variables)
        again = read_nccl(Path(facts.python), environ={**environ, **without}, timeout_s=timeout_s)
        tries.append(
            PathTry(
                variables=path.variables,
                fault=again.failed,
                message=again.message,
                wall_s=again.wall_s,
                bus_bandwidth_gb_s=again.result.bus_bandwidth_gb_s if again.result else None,
            )
        )
        if again.failed is None:
            break
    return replace(facts, tries=tuple(tries))


def facts_of(python: Path, run: ProgramRun, answer: str | None) -> NcclFacts:
    """Return the facts from the end of the probe and from ``answer``, the text that it wrote, if any."""
    if run.end == "not_started":
        return NcclFacts(python=str(python), fault="worker_not_startable", message=run.stderr)
    facts = NcclFacts(
        python=str(python),
        exit_code=run.exit_code,
        signal=run.signal,
        output=run.stdout[-OUTPUT_CHARACTERS:] + run.stderr[-OUTPUT_CHARACTERS:],
        wall_s=run.wall_s,
    )
    if run.end == "hung":
        return replace(facts, fault="nccl_hung", message=f"no answer in {run.wall_s:.0f} s{_warning(run)}")
    if run.end == "died":
        return replace(facts, fault="nccl_crashed", message=f"{run.signal}: {_last_words(run)}")
    try:
        if run.exit_code == 0:
            return replace(facts, result=TypeAdapter(NcclResult).validate_json(answer or ""))
        error = TypeAdapter(_Error).validate_json(answer or "")
    except ValidationError:
        return replace(facts, fault="nccl_no_answer", message=f"exit code {run.exit_code}: {_last_words(run)}")
    return replace(facts, fault=error.error, message=error.message + _warning(run))


def _lines(run: ProgramRun) -> list[str]:
    return [line.strip() for line in (*run.stdout.splitlines(), *run.stderr.splitlines()) if line.strip()]


def _warning(run: ProgramRun) -> str:
    """Return NCCL's last warning, which has the cause that torch's message lacks, as the end of a sentence."""
    return "".join(f": {line}" for line in [line for line in _lines(run) if "NCCL WARN" in line][-1:])


def _last_words(run: ProgramRun) -> str:
    """Return NCCL's last warning, else Python's last fatal error, else the last line."""
    lines = _lines(run)
    for mark in ("NCCL WARN", "Fatal Python error", ""):
        if fitting := [line for line in lines if mark in line]:
            return fitting[-1]
    return "no message"


_REPAIRS: Final = {
    "no_torch": "Install the worker again, or pass a Python that has torch to --worker-python.",
    "worker_not_startable": "Pass a Python that runs to --worker-python, or remove the worker and run bench again.",
    "no_cuda": "Repair the faults of the driver's checks first; replace a torch built for the CPU (CUDA None).",
    "no_nccl": "Use a torch that is built with NCCL, as the pinned worker's is.",
    "nccl_error": "Read the message. Often: no memory left on a GPU.",
    "nccl_crashed": "Read its last words. The driver may be too old for torch's CUDA.",
    "nccl_no_answer": "Read its last words in the evidence; run python -m tasks.nccl_probe /tmp/answer.json by hand.",
    "nccl_hung": "Look for Xid errors in dmesg; nvidia-smi topo -m shows the links.",
    "nccl_wrong_sum": "Look for Xid errors in dmesg, at nvidia-smi -q -d ECC, and at PCIe ACS and the IOMMU.",
}


def judge_nccl_all_reduce(facts: NcclFacts, num_gpus: int, shm_repair: str | None) -> Judgement:
    """Check NCCL's sum over ``num_gpus``, the GPUs that NVML and CUDA_VISIBLE_DEVICES show.

    ``shm_repair``: what /dev/shm needs; None if it is large enough, and so no cause.
    """
    subject = Subject(f"the right sum over {num_gpus} GPU(s), with peer access", facts)
    tried = describe_tries(facts.tries)
    if path := broken_path(facts.tries):
        repair = path.repair(facts.variables, shm_repair)
        return subject.failure(path.fault, (facts.message or "wrong sum") + tried, repair)
    if facts.result is not None:
        return _judge_result(subject, facts.result, num_gpus, tried)
    if num_gpus == 0:
        return subject.not_checked("no GPU" + tried)
    found = (facts.message or "") + tried
    if facts.fault == "worker_missing":
        return subject.not_checked(found)
    fault = facts.fault or "nccl_no_answer"
    more = [shm_repair] if shm_repair and fault in OF_A_PATH else []
    if fault in OF_A_PATH and facts.variables.get("NCCL_DEBUG") != "INFO":
        more.append("export NCCL_DEBUG=INFO says more.")
    return subject.failure(fault, found, " ".join((_REPAIRS[fault], *more)))


def _judge_result(subject: Subject, result: NcclResult, num_gpus: int, tried: str) -> Judgement:
    bandwidth = result.bus_bandwidth_gb_s
    speed = f", bus bandwidth {bandwidth:.1f} GB/s at {result.message_bytes / 2**20:.0f} MiB" if bandwidth else ""
    found = f"NCCL {result.nccl} over {len(result.gpus)} GPU(s){speed}"
    if not result.is_sum_right:
        return subject.failure("nccl_wrong_sum", f"wrong sum, {found}{tried}", _REPAIRS["nccl_wrong_sum"])
    if len(result.gpus) != num_gpus:
        return subject.failure(
            "nccl_gpus_missing",
            f"{found}, but NVML shows {num_gpus}",
            "CUDA and NVML disagree: look at CUDA_VISIBLE_DEVICES, MIG, /dev/nvidia* and dmesg.",
        )
    if not all(access for row in result.peer_access for access in row):
        return subject.warning(
            "no_peer_access",
            f"{found}; no peer access between some GPUs",
            "Data goes through the host's memory. Look at nvidia-smi topo -p2p r; in a virtual machine ask its host.",
        )
    return subject.ok(found)
