"""Which addresses a webhook may reach: the public internet, and private networks that the configuration names.

Pure. Forms that embed another address (IPv4 in IPv6, NAT64, 6to4) are judged by the embedded one. Link-local addresses,
where clouds keep their metadata, are never allowed.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from yarl import URL

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
"""The range that IANA assigns as global unicast."""
_PROTOCOL_IPV4 = ipaddress.IPv4Network("192.0.0.0/24")
_METADATA = (
    ipaddress.ip_network("169.254.0.0/16"),
    ipaddress.ip_network("fe80::/10"),
    ipaddress.ip_network("fd00:ec2::/32"),
)
_NUMBERS = re.compile(r"(?i:0x[0-9a-f]+|[0-9]+)(?:\.(?i:0x[0-9a-f]+|[0-9]+)){0,3}")
HINT = "the operator may allow it in dispatch.private_targets"


@dataclass(frozen=True, slots=True)
class PrivateTarget:
    """A network that the operator allows, on all ports or on one."""

    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> PrivateTarget:
        """`10.0.0.0/8`, `127.0.0.1:9000`, `[::1]:9000`; raises ValueError."""
        host, port = text, None
        if text.startswith("["):
            host, _, rest = text[1:].partition("]")
            port = rest.removeprefix(":") or None
        elif text.count(":") == 1:
            host, port = text.split(":")
        return cls(ipaddress.ip_network(host, strict=False), None if port is None else int(port))

    def holds(self, address: IpAddress, port: int) -> bool:
        """Whether it contains an address and port."""
        return address in self.network and self.port in (None, port)


def list_private_targets(texts: Iterable[str]) -> tuple[PrivateTarget, ...]:
    """The private networks that webhooks may reach."""
    return tuple(PrivateTarget.parse(text) for text in texts)


def may_reach(address: IpAddress, port: int, private: tuple[PrivateTarget, ...]) -> bool:
    """Whether a webhook may be sent to an address."""
    real = _unwrap(address)
    if any(real in network for network in _METADATA):
        return False
    if any(target.holds(real, port) for target in private):
        return True
    if isinstance(real, ipaddress.IPv6Address) and real not in _GLOBAL_IPV6:
        return False  # deprecated and local forms, some of which hold an IPv4 address
    return real.is_global and not real.is_multicast and real not in _PROTOCOL_IPV4


def check_url(text: str, private: tuple[PrivateTarget, ...]) -> str:
    """Why a URL is not allowed as a webhook's address; empty if it is. Names are checked again when they are resolved."""
    try:
        url = URL(text)
        port = url.port
    except ValueError:
        return "is not a valid URL"
    if url.scheme not in ("http", "https") or not url.host or not port:
        return "must be an http or https URL with a host"
    if url.user is not None or url.password is not None or url.fragment:
        return "must not hold a user, a password or a fragment"
    labels = (url.raw_host or "").removesuffix(".").split(".")
    if ":" not in url.host and not all(1 <= len(label) <= 63 for label in labels):
        return "must have a host whose labels (the parts between dots) have 1 to 63 characters"
    literal = read_literal(url.raw_host or "")
    if literal is not None and not may_reach(literal, port, private):
        return f"is not a public address; {HINT}"
    return ""


def read_literal(host: str) -> IpAddress | None:
    """The address in a host name that is an address, including forms such as `10.1`, `0x7f.1` and `2130706433` that resolvers accept."""
    plain = host.strip("[]").partition("%")[0].removesuffix(".")
    try:
        return ipaddress.ip_address(plain)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(plain)) if _NUMBERS.fullmatch(plain) else None
    except OSError:
        return None


def _unwrap(address: IpAddress) -> IpAddress:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
