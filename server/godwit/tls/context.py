"""TLS of the admin and dispatch ports with Python's library: certificates, lowest version and suites from [tls].

It owns the choice of a certificate by name and type of key, and the translation of suite names. The library cannot leave out
single suites of TLS 1.3: if the configuration does, the port uses TLS 1.2 only, or the start fails if that is not allowed.
"""

from __future__ import annotations

import ssl
from pathlib import Path
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
    context.options |= ssl.OP_NO_RENEGOTIATION
    renew_context(context, tls)
    return context


def renew_context(context: ssl.SSLContext, tls: TlsConfig) -> None:
    """Use these certificates, versions and suites for new connections. Raises ConfigInvalid. Call it in the thread that accepts
    connections.
    """
    oldest, newest, suites = _choose_versions(tls)
    choice = CertificateChoice(tls, suites)

    def show(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = choice.choose(name)

    context.maximum_version = newest
    context.minimum_version = oldest
    context.set_ciphers(suites)
    context.sni_callback = show


def _choose_versions(tls: TlsConfig) -> tuple[ssl.TLSVersion, ssl.TLSVersion, str]:
    """The lowest and the highest version, and the suites of TLS 1.2."""
    wanted = tls.cipher_suites or SUITES
    older = [name_of_openssl(name) for name in wanted if name not in NEWEST]
    suites = ":".join(older) or "ECDHE+AESGCM:ECDHE+CHACHA20"
    if set(NEWEST) <= set(wanted):
        allows_older = tls.version_min != "1.3" and older
        oldest = ssl.TLSVersion.TLSv1_2 if allows_older else ssl.TLSVersion.TLSv1_3
        return oldest, ssl.TLSVersion.MAXIMUM_SUPPORTED, suites
    if older and tls.version_min != "1.3":
        return ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, suites
    problem = (
        f"leave out suites of TLS 1.3, which the admin and dispatch ports cannot: expected all of {', '.join(NEWEST)}"
    )
    raise ConfigInvalid("tls.cipher_suites", list(tls.cipher_suites), problem)


class CertificateChoice:
    """Chooses the certificates for a client: those for the name it asks for, one for each type of key, else those with the same
    names as the first. The library then takes the type that the client can verify.
    """

    def __init__(self, tls: TlsConfig, suites: str) -> None:
        self._suites = suites
        pairs = list(zip(tls.certificate_files, tls.key_files, strict=False))
        try:
            self._names = [_read_names(Path(file)) for file, _ in pairs]
            self._first = self._make_context(
                [pair for pair, names in zip(pairs, self._names, strict=True) if names == self._names[0]]
            )
            self._by_name = {
                name: self._make_context(
                    [pair for pair, names in zip(pairs, self._names, strict=True) if name in names]
                )
                for name in frozenset().union(*self._names)
            }
        except (OSError, IndexError, ValueError) as error:
            raise ConfigInvalid(
                "tls.certificate_files", list(tls.certificate_files), f"cannot be used: {error}"
            ) from error

    def choose(self, name: str | None) -> ssl.SSLContext:
        """Return a context with the certificates for this name."""
        name = (name or "").lower()
        wildcard = f"*.{name.partition('.')[2]}"
        return self._by_name.get(name) or self._by_name.get(wildcard) or self._first

    def _make_context(self, pairs: list[tuple[str, str]]) -> ssl.SSLContext:
        """Load certificates. The library keeps the last one of each type of key, so the first in the list is loaded last. A
        connection keeps its versions when its context changes, but takes the suites of the new one.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(self._suites)
        for certificate, key in reversed(pairs):
            context.load_cert_chain(certificate, key)
        return context


def _read_names(file: Path) -> frozenset[str]:
    """Return the host names of a certificate in lower case."""
    from cryptography import x509  # imported only if there are certificates

    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(name.lower() for name in names.get_values_for_type(x509.DNSName))


def name_of_openssl(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return f"{exchange}_{cipher}".replace("_", "-")
