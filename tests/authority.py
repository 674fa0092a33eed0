"""A certificate authority for tests: makes certificates for host names and for clients, as PEM files in a folder."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """`file` is the root that a client trusts. An authority `under` another one sends its own certificate with those that it issues."""

    def __init__(self, folder: Path, name: str = "Test authority", *, under: Authority | None = None) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = under or self
        built = signer._begin(self._name, self._key).add_extension(x509.BasicConstraints(True, None), critical=True)
        self._certificate = built.sign(signer._key, hashes.SHA256())
        self._above = b"" if under is None else self._certificate.public_bytes(Encoding.PEM) + under._above
        self.file = folder / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(
        self,
        *hosts: str,
        client: str = "",
        file: str = "",
        emails: tuple[str, ...] = (),
        uris: tuple[str, ...] = (),
        lives: datetime.timedelta = DAY,
        kind: Literal["ecdsa", "rsa"] = "ecdsa",
    ) -> tuple[str, str]:
        """The files of a certificate for hosts, or for a client of a name, and of its key."""
        key = rsa.generate_private_key(65_537, 2_048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
        common = client or hosts[0]
        builder = self._begin(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)]), key, lives)
        names = [_name(host) for host in hosts]
        names += [x509.RFC822Name(email) for email in emails]
        names += [x509.UniformResourceIdentifier(uri) for uri in uris]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        stem = self.folder / (file or common.replace("*", "any").replace("/", "-"))
        chain, private = stem.with_suffix(".crt"), stem.with_suffix(".key")
        chain.write_bytes(certificate.public_bytes(Encoding.PEM) + self._above)
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return str(chain), str(private)

    def _begin(self, name: x509.Name, key: Any, lives: datetime.timedelta = DAY) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + lives)
        )


def read_der(file: str) -> bytes:
    """A certificate as it stands on the wire."""
    return x509.load_pem_x509_certificate(Path(file).read_bytes()).public_bytes(Encoding.DER)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
