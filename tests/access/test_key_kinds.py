"""Certificates with keys of two kinds for one server name: each client is shown the one that it can check."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from pathlib import Path
from typing import Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from godwit import testing
from tests.authority import Authority

KINDS: dict[Literal["ecdsa", "rsa"], type] = {"ecdsa": ec.EllipticCurvePublicKey, "rsa": rsa.RSAPublicKey}
SUITES = {"ecdsa": "ECDHE-ECDSA-AES128-GCM-SHA256", "rsa": "ECDHE-RSA-AES128-GCM-SHA256"}


async def shown(node: testing.RunningNode, authority: Authority, suite: str, name: str | None) -> x509.Certificate:
    """The certificate that a client of TLS 1.2 with this one suite is shown."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(authority.file)
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(suite)
    made.check_hostname = name is not None
    assert node.client_tls is not None
    _, writer = await asyncio.open_connection(
        node.client_tls.host, node.client_tls.port, ssl=made, server_hostname=name or ""
    )
    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


@pytest.mark.parametrize("order", list(itertools.permutations(KINDS)), ids="-".join)
@pytest.mark.parametrize("host", ["localhost", "*.shop.example"])
async def test_each_client_is_shown_the_certificate_whose_key_it_can_check(
    order: tuple[Literal["ecdsa", "rsa"], ...], host: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    pairs = [authority.issue(host, file=kind, kind=kind) for kind in order]
    pairs.append(authority.issue("other.test", file="other"))
    tls = {"certificate_files": [chain for chain, _ in pairs], "key_files": [key for _, key in pairs]}
    async with testing.node({"tls": tls, "client": {"tls_address": "127.0.0.1:0"}}) as node, asyncio.timeout(60):
        for kind, public in KINDS.items():
            for name in (host.replace("*", "a"), None):  # without a name: as the first certificate's
                certificate = await shown(node, authority, SUITES[kind], name)
                assert isinstance(certificate.public_key(), public), (kind, name)
                names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
                assert names.get_values_for_type(x509.DNSName) == [host]
        with pytest.raises((ssl.SSLError, ConnectionError)):  # of this name there is one of one kind
            await shown(node, authority, SUITES["rsa"], "other.test")
        await shown(node, authority, SUITES["ecdsa"], "other.test")
