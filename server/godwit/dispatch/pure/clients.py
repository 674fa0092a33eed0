"""The address of a client behind trusted proxies.

Pure. Any client can forge a header, so it is read from its end, and only the part that trusted proxies wrote.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def list_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Networks, or single addresses."""
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def find_client(peer: str, forwarded: Iterable[str], proxies: Sequence[Network]) -> str:
    """The address of the client: the peer, or if that is a trusted proxy, the last address in X-Forwarded-For that is not one."""
    hops = [hop.strip() for text in forwarded for hop in text.split(",")]
    client = peer
    while hops and _is_in(client, proxies):
        following = _read(hops.pop())
        if following is None:
            break
        client = str(following)
    return client


def _is_in(text: str, networks: Sequence[Network]) -> bool:
    address = _read(text)
    return address is not None and any(address in network for network in networks)


def _read(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
