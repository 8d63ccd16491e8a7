"""Every process of one run: find them all, and leave none behind.

torchrun starts each rank in a session of its own, so no process group contains them all, and a rank whose torchrun was
killed belongs to init. A process belongs to a run if it inherited an environment variable, or descends from one that
did.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import psutil

from suite.errors import LabscaleError, WorkerEnvironmentError
from suite.external.parent_death import end_with_parent

RUN_ID_VARIABLE: Final = "LABSCALE_RUN_ID"
KILL_PATIENCE_S: Final = 15.0  # for the kernel to end processes after SIGKILL; freeing GPU memory can take seconds
STACK_DUMP_S: Final = 1.0  # for the ranks to write their stacks
POLL_S: Final = 0.1
# ``dump_stacks`` for a shell elsewhere: every process that handles SIGUSR1, bit 9 of its caught signals, gets it.
DUMP_STACKS: Final = """
for status in $(grep -lE '^SigCgt:.*[2367abef][0-9a-f]{2}$' /proc/[0-9]*/status); do
    process=${status#/proc/}
    kill -USR1 "${process%/status}"
done
"""


class RunProcesses:
    """The processes of one run, and their folder of temporary files.

    That folder is not in the run directory, whose path may be too long for a socket.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], output: IO[bytes], *, cpus: Sequence[int] = ()
    ) -> None:
        """Start ``argv`` in a session of its own, so that Ctrl-C in the terminal reaches labscale alone.

        Raises WorkerEnvironmentError if the program cannot be executed.
        """
        self.run_id = uuid.uuid4().hex
        self._temporary_files = tempfile.mkdtemp(prefix="labscale-run-")
        self._members: set[psutil.Process] = set()
        self._oom_kills = _oom_kills()
        self._started_unix_s = time.time()
        own = {RUN_ID_VARIABLE: self.run_id, "TMPDIR": self._temporary_files}
        inside = {f"APPTAINERENV_{name}": value for name, value in own.items()}

        def become_child() -> None:
            """End with labscale, since an orphan would disturb the next run; run on ``cpus``, as children will."""
            end_with_parent()
            if cpus:
                os.sched_setaffinity(0, cpus)

        try:
            self.root = subprocess.Popen(
                argv,
                env={**os.environ, **env, **own, **inside},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=become_child,  # noqa: PLW1509  (system calls, loaded before the fork)
            )
        except OSError as error:
            shutil.rmtree(self._temporary_files)
            message = f"cannot start {argv[0]!r}: {error.strerror}. It must be the Python of the worker environment."
            raise WorkerEnvironmentError(message) from error

    def exit_code(self, wait_s: float) -> int | None:
        """Wait for the root process, for at most ``wait_s``; None while it runs."""
        try:
            return self.root.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def oom_kills(self) -> int | None:
        """Count the processes of this machine that the kernel has killed for lack of memory since the start."""
        now = _oom_kills()
        return None if now is None or self._oom_kills is None else now - self._oom_kills

    def alive(self) -> list[psutil.Process]:
        """Every living process of the run, wherever in the process tree it is."""
        self.root.poll()  # reaps it
        everyone = {
            process.pid: process
            for process in psutil.process_iter(["ppid", "status", "environ"])
            if process.info["status"] != psutil.STATUS_ZOMBIE  # it has ended; its parent has not waited for it
        }
        members = {
            pid
            for pid, process in everyone.items()
            if process in self._members or (process.info["environ"] or {}).get(RUN_ID_VARIABLE) == self.run_id
        }
        if self.root.returncode is None:  # also in the instant before it has executed its program
            members.add(self.root.pid)
        num_members = 0
        while num_members != len(members):  # descendants may have cleared their environment
            num_members = len(members)
            members |= {pid for pid, process in everyone.items() if process.info["ppid"] in members}
        living = [everyone[pid] for pid in members if pid in everyone]
        self._members.update(living)
        return living

    def dump_stacks(self) -> None:
        """Have every process that handles SIGUSR1 (ranks register faulthandler for it) write its stacks."""
        asked = [process for process in self.alive() if _catches(process.pid, signal.SIGUSR1)]
        _send(asked, signal.SIGUSR1)
        if asked:
            time.sleep(STACK_DUMP_S)

    def end(self, grace_s: float) -> None:
        """Send SIGTERM, wait for at most ``grace_s`` [s], then send SIGKILL: on return no process of the run is left.

        Raises LabscaleError if the kernel does not end a process, as happens when it hangs in a driver.
        """
        try:
            living = self.alive()
            _send(living, signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while living and time.monotonic() < deadline:
                time.sleep(POLL_S)
                living = self.alive()
        finally:  # a second Ctrl-C cuts the grace short, not the end
            self._kill()
            shutil.rmtree(self._temporary_files, ignore_errors=True)
            self._remove_shared_memory()

    def _remove_shared_memory(self) -> None:
        """Remove what killed processes of Omniverse left since the start; its name ends with the process's id."""
        for path in Path("/dev/shm").glob("*carb-*-*"):  # noqa: S108  the kernel's folder
            pid = path.name.rpartition("-")[2]
            with suppress(OSError):
                file = path.stat()
                is_new = file.st_uid == os.getuid() and file.st_mtime >= self._started_unix_s
                if is_new and pid.isdecimal() and not _is_running(int(pid)):
                    path.unlink()

    def _kill(self) -> None:
        deadline = time.monotonic() + KILL_PATIENCE_S
        while living := self.alive() or self.alive():  # twice: a process may fork and exit during the first look
            if time.monotonic() > deadline:
                pids = ", ".join(str(process.pid) for process in living)
                message = (
                    f"processes {pids} of this run do not end, {KILL_PATIENCE_S:g} s after SIGKILL: they hang in the"
                    " kernel, often in a GPU driver, and would disturb every run after this one. Restart the machine or"
                    " reset its GPUs, then run the same command again: what has finished is kept."
                )
                raise LabscaleError(message)
            _send(living, signal.SIGKILL)
            time.sleep(POLL_S)


def _oom_kills() -> int | None:
    """Count the processes of this machine that the kernel killed for lack of memory; None if it does not say."""
    try:
        with open("/proc/vmstat", encoding="utf-8") as counters:  # noqa: PTH123  a kernel interface
            return next((int(line.split()[1]) for line in counters if line.startswith("oom_kill ")), None)
    except OSError:
        return None


def _send(processes: Sequence[psutil.Process], signal_number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # psutil refuses when the pid belongs to another process by now
            process.send_signal(signal_number)


def _is_running(pid: int) -> bool:
    """Whether a process runs: one that nobody has waited for yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _catches(pid: int, signal_number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal. Without one most signals end it."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:  # noqa: PTH123  a kernel interface
            caught = next(line.split()[1] for line in status if line.startswith("SigCgt:"))
    except (FileNotFoundError, ProcessLookupError):
        return False
    return bool(int(caught, 16) >> (signal_number - 1) & 1)
