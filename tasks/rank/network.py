"""A rank's network: NCCL's own log, the interfaces that gloo's sockets are bound to, and the machine.

Imports no torch.
"""

import contextlib
import fcntl
import hashlib
import ipaddress
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from suite.schema.observations import UNKNOWN_INTERFACE

# Written while communicators are made; NCCL's lines of every collective are in other subsystems.
NCCL_SUBSYSTEMS: Final = "INIT,NET,GRAPH"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_INET6: Final = Path("/proc/net/if_inet6")
_ESTABLISHED: Final = "01"  # proc(5), net/tcp
_SIOCGIFADDR: Final = 0x8915  # ioctl(2), Linux


def machine() -> str | None:
    """A word that is the same in every process on this kernel, and says nothing else of it."""
    try:
        return hashlib.sha256(_BOOT_ID.read_bytes()).hexdigest()[:12]
    except OSError:
        return None


# ---- NCCL ----


def nccl_log_path(run_dir: Path, rank: int) -> Path:
    return run_dir / "logs" / f"nccl-rank-{rank}.log"


def nccl_log_variables(run_dir: Path, rank: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Have NCCL say in a file which way data go; none when the user asked it for something else."""
    if any(name.startswith("NCCL_DEBUG") for name in environ):
        return {}
    path = nccl_log_path(run_dir, rank)
    path.parent.mkdir(exist_ok=True)
    escaped = str(path).replace("%", "%%")  # NCCL replaces %h and %p by host and process
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": NCCL_SUBSYSTEMS, "NCCL_DEBUG_FILE": escaped}


def nccl_log_written_s(run_dir: Path, rank: int, clock_zero_s: float) -> float | None:
    """When NCCL last wrote to its log, counted from ``clock_zero_s`` of the monotonic clock; None without a log."""
    try:
        written_unix_s = nccl_log_path(run_dir, rank).stat().st_mtime
    except FileNotFoundError:
        return None
    return written_unix_s - time.time() + time.perf_counter() - clock_zero_s


# ---- gloo ----


def bound_interfaces(store_port: int) -> list[str]:
    """Interfaces of this process's TCP connections, but for those to the store that joined the ranks."""
    inodes = set(_own_sockets())
    found = {
        address
        for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6")
        for address, ports, inode in _connections(Path(table))
        if inode in inodes and store_port not in ports
    }
    names = _interfaces()
    return sorted({_name_of(address, names) for address in found})


def _name_of(address: str, names: Mapping[str, str]) -> str:
    """Never the address itself, which would be published: the whole of 127/8 is the loopback's."""
    if ipaddress.ip_address(address).is_loopback:
        return "lo"
    return names.get(address, UNKNOWN_INTERFACE)


def _own_sockets() -> Iterator[str]:
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed in between
            target = str(entry.readlink())
            if target.startswith("socket:["):
                yield target[len("socket:[") : -1]


def _connections(table: Path) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield own address, (own port, other port) and inode of each established connection."""
    if not table.exists():
        return
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        (own, own_port), (_, other_port) = (field.split(":") for field in fields[1:3])
        if fields[3] == _ESTABLISHED:
            yield _address(own), (int(own_port, 16), int(other_port, 16)), fields[9]


def _address(hexadecimal: str) -> str:
    """An address of net/tcp, whose words are in the host's byte order; IPv4 within IPv6 as IPv4."""
    words = struct.iter_unpack("=I", bytes.fromhex(hexadecimal))
    packed = b"".join(struct.pack(">I", word) for (word,) in words)
    if len(packed) == 16 and packed[:12] == bytes(10) + b"\xff\xff":  # noqa: PLR2004  RFC 4291
        packed = packed[12:]
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)  # noqa: PLR2004


def _interfaces() -> dict[str, str]:
    """The first IPv4 address of each interface, and every IPv6 one."""
    found = {}
    if _INET6.exists():
        for packed, *_, name in map(str.split, _INET6.read_text(encoding="ascii").splitlines()):
            found[socket.inet_ntop(socket.AF_INET6, bytes.fromhex(packed))] = name
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no IPv4 address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                found[socket.inet_ntoa(answer[20:24])] = name
    return found
