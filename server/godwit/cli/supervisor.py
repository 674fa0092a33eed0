"""Tells whoever started the node how it is, in systemd's words (`Type=notify`): `READY=1` once it listens, `STOPPING=1` as it leaves.

Owns the datagram to the socket that NOTIFY_SOCKET names; where there is none, nobody is told. Nothing here stops a node.
"""

from __future__ import annotations

import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"


def tell_supervisor(state: str) -> None:
    """A name that begins with @ is one of Linux's abstract sockets."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.connect(f"\0{name[1:]}" if name.startswith("@") else name)
        told.sendall(state.encode())
