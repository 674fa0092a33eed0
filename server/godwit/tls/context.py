"""TLS of the admin and dispatch ports: certificate, least version and suites of [tls], spoken by Python's own library.

Owns the translation of suites' names. That library cannot leave out a single suite of TLS 1.3: where the configuration does, the port
speaks 1.2 alone, or refuses to start where it may not.
"""

from __future__ import annotations

import ssl
from typing import Protocol

from ..config.tls import SUITES, TlsConfig
from ..errors import ConfigInvalid

NEWEST = tuple(name for name in SUITES if name.startswith("TLS13_"))


class TlsPort(Protocol):
    """A port whose certificate a reload renews."""

    def try_certificates(self, tls: TlsConfig) -> None:
        """Raises ConfigInvalid where `certify` would fail."""

    def certify(self, tls: TlsConfig) -> None:
        """Shows these certificates, which have been tried, from now on."""


def make_tls_context(tls: TlsConfig) -> ssl.SSLContext:
    """Raises ConfigInvalid."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if tls.version_min == "1.3" else ssl.TLSVersion.TLSv1_2
    wanted = tls.cipher_suites or SUITES
    older = [name_of_openssl(name) for name in wanted if name not in NEWEST]
    context.set_ciphers(":".join(older) or "ECDHE+AESGCM:ECDHE+CHACHA20")
    if set(NEWEST) <= set(wanted):
        context.minimum_version = context.minimum_version if older else ssl.TLSVersion.TLSv1_3
    elif older and tls.version_min != "1.3":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    else:
        problem = f"leave out suites of TLS 1.3, which the admin and dispatch ports cannot: expected all of {', '.join(NEWEST)}"
        raise ConfigInvalid("tls.cipher_suites", list(tls.cipher_suites), problem)
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(tls.certificate_files[0], tls.key_files[0])
    except (OSError, IndexError) as error:
        raise ConfigInvalid("tls.certificate_files", list(tls.certificate_files), f"cannot be used: {error}") from error
    return context


def renew_certificate(context: ssl.SSLContext, tls: TlsConfig) -> None:
    """New connections get this certificate from now on; `make_tls_context` has tried it. For the thread that accepts connections."""
    context.load_cert_chain(tls.certificate_files[0], tls.key_files[0])


def name_of_openssl(suite: str) -> str:
    """What OpenSSL calls a suite of TLS 1.2."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return f"{exchange}_{cipher}".replace("_", "-")
