"""Wait on each node of a round until all are there: ``python -m suite.launch.nodes.wait_for_nodes --nodes N ...``.

Pods may start minutes apart, because their image is fetched first. torchrun waits for nodes that start together
(``suite.launch.nodes.node``), and the time limit of a round begins when all nodes are there. The head listens on the
port after that of the rendezvous; each other node sends its number there, and continues when the head answers.
"""

import argparse
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from suite.errors import LabscaleError, SchedulerError
from suite.files.wording import listed
from suite.launch.nodes.node import HEAD, NODE_RANK, RENDEZVOUS_PORT

HELLO_S: Final = 5.0  # for a node that is there to connect and to say its number
RETRY_S: Final = 0.5
_GO: Final = b"\n"


def meet(environ: Mapping[str, str], *, nnodes: int, within_s: float) -> None:
    """Return when all ``nnodes`` have come.

    Raises SchedulerError if one did not come within ``within_s`` [s], or the head's port is in use.
    """
    if nnodes == 1:
        return
    rank, port = int(environ[NODE_RANK]), int(environ[RENDEZVOUS_PORT]) + 1
    deadline_s = time.monotonic() + within_s
    if rank == 0:
        missing = _await_others(port, nnodes, deadline_s)
    else:
        missing = _await_head(environ[HEAD], port, rank, deadline_s)
    if missing:
        raise SchedulerError(
            f"{listed('node', missing)} of {nnodes} did not come within {within_s:g} s, so node {rank} does not train."
            " See what keeps them, such as GPUs that others have or an image that cannot be fetched; then start the"
            " run again."
        )


def _await_others(port: int, nnodes: int, deadline_s: float) -> list[int]:
    """Numbers of the nodes that did not come. If all came, tell them to continue."""
    there: dict[int, socket.socket] = {}
    with ExitStack() as stack:
        server = stack.enter_context(_listening(port, nnodes))
        while len(there) < nnodes - 1 and (left_s := deadline_s - time.monotonic()) > 0:
            server.settimeout(left_s)
            with suppress(TimeoutError):
                connection = stack.enter_context(server.accept()[0])
                if (rank := _number_from(connection)) in range(1, nnodes):
                    there[rank] = connection
        missing = [rank for rank in range(1, nnodes) if rank not in there]
        for connection in () if missing else there.values():
            with suppress(OSError):  # the node has gone again; torchrun will notice
                connection.sendall(_GO)
    return missing


def _listening(port: int, nnodes: int) -> socket.socket:
    """Raises SchedulerError if something else has the port."""
    try:
        return socket.create_server(("", port), backlog=nnodes)
    except OSError as error:
        raise SchedulerError(
            f"node 0 cannot listen on port {port}, where the other nodes meet it: {error.strerror}. See what uses the"
            " port, such as another run on a host network; then start the run again."
        ) from error


def _number_from(connection: socket.socket) -> int:
    """The number that a node sends; 0 for anything else, such as a probe of the port."""
    connection.settimeout(HELLO_S)
    try:
        line = connection.makefile("rb").readline(8)
    except OSError:
        return 0
    return int(line) if line.strip().isdigit() else 0


def _await_head(head: str, port: int, rank: int, deadline_s: float) -> list[int]:
    """[] once the head says that all are there; [0], the head, if it never does."""
    while (left_s := deadline_s - time.monotonic()) > 0:
        # The head's name may not be known yet, it may not listen yet, or it may be restarting.
        with suppress(OSError), socket.create_connection((head, port), timeout=min(HELLO_S, left_s)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.sendall(f"{rank}\n".encode())
            connection.settimeout(left_s)
            if connection.recv(len(_GO)) == _GO:
                return []
        time.sleep(RETRY_S)
    return [0]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="suite.launch.nodes.wait_for_nodes")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--within-s", type=float, required=True)
    arguments = parser.parse_args(argv)
    try:
        meet(os.environ, nnodes=arguments.nodes, within_s=arguments.within_s)
    except LabscaleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
