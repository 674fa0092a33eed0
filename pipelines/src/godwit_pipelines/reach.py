"""Whether somebody takes connections, asked before Spark waits for it for minutes. Owns reading `HOST:PORT,…`."""

from __future__ import annotations

import socket

from .errors import ConfigInvalid

TIMEOUT_S = 5.0


def find_unreachable(key: str, servers: str, timeout_s: float = TIMEOUT_S) -> str:
    """Why none of `HOST:PORT,…` takes a connection; empty if one does. Raises ConfigInvalid for what is no address."""
    failures = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ConfigInvalid(key, server, "must be HOST:PORT", hint="several are joined by commas")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            return ""
        except OSError as error:
            failures.append(f"{server.strip()}: {error.strerror or error}")
    return "; ".join(failures)
