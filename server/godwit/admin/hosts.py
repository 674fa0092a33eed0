"""Which Host headers the admin port answers: protection against DNS rebinding by foreign domains.

Pure. An attacker's page can make a browser connect here, but only under the attacker's domain name. Therefore IP
addresses, localhost and the configured names are answered, and nothing else.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


def is_host_allowed(header: str, names: Iterable[str]) -> bool:
    """Whether a request with this Host header may be answered."""
    host = read_host(header)
    if host is None:
        return False
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.lower().rstrip(".") in {"localhost", *(name.lower() for name in names)}
    return True


def read_host(header: str) -> str | None:
    """The host of a Host header without its port; None if the header is not valid."""
    found = _HOST.fullmatch(header)
    return found[1] if found else None
