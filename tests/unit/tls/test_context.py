"""A port whose TLS Python speaks uses no suite that the configuration leaves out."""

import ssl

import pytest

from godwit.config.tls import SUITES, TlsConfig
from godwit.errors import ConfigInvalid
from godwit.tls.context import NEWEST, make_tls_context, name_of_openssl
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
