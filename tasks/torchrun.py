"""Run torchrun whose stores listen on one address: ``python -m tasks.torchrun ADDRESS ARGUMENTS…``.

torch's own listen on all addresses, ask nobody for a password, and unpickle what they are sent. This runs in the
worker's Python.
"""

import socket
import sys
from typing import Any

import torch.distributed


def listen_on(address: str) -> None:
    """Have every store that this process serves from now on listen on this IPv4 address alone."""
    store = torch.distributed.TCPStore

    def store_there(host_name: str, port: int, *, is_master: bool = False, **settings: Any) -> object:
        if is_master:
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind((address, port))
                port = server.getsockname()[1]
                settings["master_listen_fd"] = server.detach()
        return store(host_name, port, is_master=is_master, **settings)

    torch.distributed.TCPStore = store_there


if __name__ == "__main__":
    listen_on(sys.argv[1])

    from torch.distributed.run import main  # its modules take the store's class when they are imported

    main(sys.argv[2:])
