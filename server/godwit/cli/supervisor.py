"""Notifies the service manager of the node's state, as systemd expects (`Type=notify`): `READY=1` once it listens,
`STOPPING=1` when it ends.

Sends a datagram to the socket in NOTIFY_SOCKET, if it is set. An error here never stops a node.
"""

from __future__ import annotations

import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"


def tell_supervisor(state: str) -> None:
    """Send one state. A socket name that begins with @ is in Linux's abstract namespace."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify_socket:
        notify_socket.connect(f"\0{name[1:]}" if name.startswith("@") else name)
        notify_socket.sendall(state.encode())
