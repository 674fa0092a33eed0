"""Checks of texts in lists: origins, networks, patterns, algorithms. Pure."""

from __future__ import annotations

import ipaddress
import re

from ..subject import check_pattern

IDENTITY, TENANT = "{identity}", "{tenant}"
TOKEN_ALGORITHMS = (
    "HS256",
    "HS384",
    "HS512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)


_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?", re.ASCII)


def check_origins(origins: tuple[str, ...]) -> None:
    """An origin is a scheme, a host and perhaps a port, in small letters, as browsers write it; raises ValueError."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"contains {origin!r}, which is not an origin: expected one such as https://a.example or http://127.0.0.1:8801"
            )


_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)


def check_hosts(hosts: tuple[str, ...]) -> None:
    """Names of hosts in small letters, without a port; raises ValueError."""
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise ValueError(
                f"contains {host!r}: expected a name such as broker.example, in small letters and without a port"
            )


def check_networks(networks: tuple[str, ...]) -> None:
    """Addresses, or networks whose host bits are zero; raises ValueError."""
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ValueError(
                f"contains {network!r}, which is not an address or network: expected one such as 10.0.0.0/8"
            ) from error


def check_patterns(patterns: tuple[str, ...]) -> None:
    """Patterns of subjects; raises SubjectInvalid, a ValueError."""
    for pattern in patterns:
        check_pattern(pattern)


def check_templates(templates: tuple[str, ...]) -> None:
    """Patterns in which {identity} may be a whole segment; raises SubjectInvalid, a ValueError."""
    _check_braces(templates, (IDENTITY,))


def check_issuer_templates(templates: tuple[str, ...]) -> None:
    """Patterns in which {identity} and {tenant} may be whole segments; raises SubjectInvalid, a ValueError."""
    _check_braces(templates, (IDENTITY, TENANT))


def check_anonymous_patterns(patterns: tuple[str, ...]) -> None:
    """Patterns for anonymous clients, without {identity} and {tenant}; raises SubjectInvalid, a ValueError."""
    _check_braces(patterns, ())


def _check_braces(templates: tuple[str, ...], known: tuple[str, ...]) -> None:
    for template in templates:
        segments = template.split("/")
        if any("{" in segment and segment not in known for segment in segments):
            expected = (
                f"expected {' or '.join(known)} as a whole segment"
                if known
                else "clients without a token have neither identity nor tenant"
            )
            raise ValueError(f"contains {template!r}: {expected}")
        check_pattern("/".join("name" if segment in known else segment for segment in segments))


def check_authorities(authorities: tuple[str, ...]) -> None:
    """Names of authorities that vouch for identities; raises ValueError."""
    unknown = [
        name for name in authorities if name not in ("certificate", "authorizer", "basic") and name[:4] != "jwt:"
    ]
    if unknown:
        raise ValueError(f"contains {unknown}: expected certificate, authorizer, basic or jwt:ISSUER")
    if len(authorities) == 1 or len(set(authorities)) != len(authorities):
        raise ValueError("must name at least two authorities, each once")


def check_algorithms(algorithms: tuple[str, ...]) -> None:
    """Algorithms of one kind of key: secrets and public keys must not be mixed; raises ValueError."""
    unknown = [name for name in algorithms if name not in TOKEN_ALGORITHMS]
    if unknown or not algorithms:
        raise ValueError(f"contains {unknown}: expected some of {', '.join(TOKEN_ALGORITHMS)}")
    if len({name.startswith("HS") for name in algorithms}) > 1:
        raise ValueError(
            "mixes algorithms of secrets (HS…) and of public keys: a public key must never serve as a secret"
        )
