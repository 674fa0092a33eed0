"""Which Host headers the admin port answers: a page of a stranger's domain, rebound to this address, gets nothing.

Pure. An attacker's page can make a browser connect here, but only under a name of the attacker's; addresses cannot be
rebound. So an IP address, localhost and the names the operator listed are answered, anything else is not.
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
    """The host of a Host header without its port; None where it is none."""
    found = _HOST.fullmatch(header)
    return found[1] if found else None
