"""The [tls] section: certificates of TLS listeners, and what they require of clients.

Pure. The engine reads the files for clients, and the admin port for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from .option import Address, option

SUITES = (
    "TLS13_AES_256_GCM_SHA384",
    "TLS13_AES_128_GCM_SHA256",
    "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
"""All known suites; each authenticates (AEAD) and has forward secrecy."""


def check_address(text: str) -> None:
    """HOST:PORT, or empty; raises ValueError."""
    if text:
        try:
            Address.parse(text)
        except ValueError as error:
            raise ValueError("must be HOST:PORT, such as 0.0.0.0:8443, or empty") from error


def check_suites(names: tuple[str, ...]) -> None:
    """Known suites; raises ValueError."""
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise ValueError(f"contains {unknown}: expected some of {', '.join(SUITES)}")


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Certificates and rules of all TLS listeners. A reload reads them again; existing connections continue."""

    certificate_files: tuple[str, ...] = option(
        (), "Certificates with their chains (PEM); SNI selects one, and the first is the default."
    )
    key_files: tuple[str, ...] = option((), "Their private keys (PEM), in the same order.")
    version_min: str = option("1.2", "Oldest TLS version that is accepted.", choices=("1.2", "1.3"))
    cipher_suites: tuple[str, ...] = option(
        (), "Cipher suites that may be used; empty: all supported ones, which are AEAD suites.", check=check_suites
    )
    client_certificates: str = option(
        "none",
        "Whether clients must show a certificate that an authority of client_authorities_file signed.",
        choices=("none", "optional", "required"),
    )
    client_authorities_file: str = option("", "Authorities that sign clients' certificates (PEM).")
    client_identity: str = option(
        "none",
        "Field of a client's certificate with its identity, used unless the client sends a token; none: certificates give no identity.",
        choices=("none", "subject_cn", "san_dns", "san_email", "san_uri"),
    )
