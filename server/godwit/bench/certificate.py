"""A new certificate for one measurement, which only the load's clients trust; it is deleted with its folder."""

from __future__ import annotations

import datetime
from pathlib import Path

CERTIFICATE = "node.crt"
KEY = "node.key"
NAME = "localhost"


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate for localhost (ECDSA, P-256) and its key; returns the files."""
    from cryptography import x509  # loaded where TLS is measured: it takes longer than the rest of a bench's start
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, private = directory / CERTIFICATE, directory / KEY
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private
