"""TLS of the admin and dispatch ports with Python's library: certificate, lowest version and suites from [tls].

Owns the translation of suites' names. The library cannot disable a single suite of TLS 1.3. If the configuration does,
the port uses TLS 1.2 only, or the start fails if that is not allowed.
"""

from __future__ import annotations

import ssl
from typing import Protocol

from ..config.tls import SUITES, TlsConfig
from ..errors import ConfigInvalid

NEWEST = tuple(name for name in SUITES if name.startswith("TLS13_"))


class TlsPort(Protocol):
    """A port whose certificate a reload replaces."""

    def try_certificates(self, tls: TlsConfig) -> None:
        """Raises ConfigInvalid if `certify` would fail."""

    def certify(self, tls: TlsConfig) -> None:
        """Use these certificates, which `try_certificates` accepted, from now on."""


def make_tls_context(tls: TlsConfig) -> ssl.SSLContext:
    """The TLS context of the configuration; raises ConfigInvalid."""
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
    """Use this certificate for new connections; `make_tls_context` has checked it. Call it on the thread that accepts connections."""
    context.load_cert_chain(tls.certificate_files[0], tls.key_files[0])


def name_of_openssl(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return f"{exchange}_{cipher}".replace("_", "-")
