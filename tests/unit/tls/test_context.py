"""A port whose TLS Python speaks uses no suite that the configuration leaves out."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from godwit.config.tls import SUITES, TlsConfig
from godwit.errors import ConfigInvalid
from godwit.tls.context import NEWEST, make_tls_context, name_of_openssl, renew_context
from tests.authority import Authority


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return Authority(tmp_path_factory.mktemp("tls")).issue("localhost")


def context_of(files: tuple[str, str], *suites: str, version_min: str = "1.2") -> ssl.SSLContext:
    return make_tls_context(TlsConfig((files[0],), (files[1],), version_min, suites))


def older(context: ssl.SSLContext) -> set[str]:
    return {cipher["name"] for cipher in context.get_ciphers() if not cipher["name"].startswith("TLS_")}


def test_every_suite_has_a_name_that_openssl_knows(files: tuple[str, str]) -> None:
    assert older(context_of(files)) == {name_of_openssl(name) for name in SUITES if name not in NEWEST}


def test_one_suite_is_the_only_one(files: tuple[str, str]) -> None:
    context = context_of(files, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    assert older(context) == {"ECDHE-ECDSA-AES256-GCM-SHA384"}
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
    newest = context_of(files, *NEWEST)
    assert newest.minimum_version == ssl.TLSVersion.TLSv1_3
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "tls.cipher_suites"):
        context_of(files, NEWEST[0])
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "tls.cipher_suites"):
        context_of(files, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", version_min="1.3")


def shake_hands(server: ssl.SSLContext, name: str, ciphers: str) -> x509.Certificate:
    """The certificate that a client of TLS 1.2 with these ciphers is shown."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    trusting.set_ciphers(ciphers)
    served = server.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name or None)
    waiting = [client, served]
    while waiting:
        try:
            waiting[0].do_handshake()
            waiting.pop(0)
        except ssl.SSLWantReadError:
            waiting.reverse()
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown)


def test_a_client_is_shown_the_certificate_of_its_name_and_of_a_kind_of_key_that_it_can_verify(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pairs = [
        authority.issue("a.example", file="a-ecdsa", kind="ecdsa"),
        authority.issue("a.example", file="a-rsa", kind="rsa"),
        authority.issue("b.example", file="b", kind="ecdsa"),
        authority.issue("*.c.example", file="c", kind="rsa"),
    ]
    server = make_tls_context(TlsConfig(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)))
    served = [x509.load_pem_x509_certificate(Path(pair[0]).read_bytes()) for pair in pairs]
    ecdsa, rsa = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"
    assert shake_hands(server, "a.example", ecdsa) == served[0]
    assert shake_hands(server, "A.example", rsa) == served[1]
    assert shake_hands(server, "", rsa) == shake_hands(server, "other.example", rsa) == served[1]
    assert shake_hands(server, "b.example", ecdsa) == served[2]
    assert shake_hands(server, "x.c.example", rsa) == served[3]
    renew_context(server, TlsConfig((pairs[2][0],), (pairs[2][1],)))
    assert shake_hands(server, "a.example", ecdsa) == served[2], "none of those before"
    with pytest.raises(ssl.SSLError):
        shake_hands(server, "a.example", rsa)


def test_a_reload_changes_suites_and_versions(files: tuple[str, str]) -> None:
    chacha, aes = "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES256-GCM-SHA384"
    server = context_of(files)

    def renew(*suites: str, version_min: str = "1.2") -> None:
        renew_context(server, TlsConfig((files[0],), (files[1],), version_min, suites))

    for suite in (chacha, aes):
        shake_hands(server, "", suite)
    renew("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    assert server.maximum_version == ssl.TLSVersion.TLSv1_2
    shake_hands(server, "", aes)
    with pytest.raises(ssl.SSLError):
        shake_hands(server, "localhost", chacha)
    for suites, version_min in ((NEWEST, "1.2"), ((), "1.3")):
        renew(*suites, version_min=version_min)
        with pytest.raises(ssl.SSLError):
            shake_hands(server, "", aes)
        renew()
        shake_hands(server, "", chacha)
    with pytest.raises(ConfigInvalid):
        renew(NEWEST[0])
    shake_hands(server, "", chacha)
