"""The identity and permissions of a certificate, also with names that try to be more than one segment."""

from dataclasses import replace
from pathlib import Path

import pytest

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion
from godwit.access.certificate import CHAIN_MAX, CertificateAuthorizer, read_holder
from godwit.codes import Code
from godwit.config import build_config
from godwit.config.checks import check_config
from godwit.config.tree import AccessConfig
from godwit.errors import ConfigInvalid
from tests.authority import Authority, read_der


class Inner(Authorizer):
    """Says who was asked about."""

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return Grant(f"{question.token}/{question.certificate_identity}")

    async def publish(self, question: SelectorQuestion) -> bool:
        return True


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def ask(der: bytes | None, token: str | None = None) -> ConnectQuestion:
    return ConnectQuestion(1, token, None, "127.0.0.1:1", certificate=der)


def access(**given: object) -> AccessConfig:
    return AccessConfig(**given)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("part", "names", "expected"),
    [
        ("subject_cn", {"client": "ann"}, "ann"),
        ("san_dns", {"client": "ann", "hosts": ("d.example",)}, "d.example"),
        ("san_email", {"client": "ann", "emails": ("ann@example.org",)}, "ann@example.org"),
        ("san_uri", {"client": "ann", "uris": ("spiffe://acme/ann",)}, "spiffe://acme/ann"),
        ("san_dns", {"client": "ann"}, None),
        ("san_dns", {"client": "ann", "hosts": ("d.example", "e.example")}, None),
        ("san_uri", {"client": "ann", "hosts": ("d.example",)}, None),
    ],
)
def test_the_holder_is_the_one_name_of_the_kind_that_is_asked_for(
    authority: Authority, part: str, names: dict[str, object], expected: str | None
) -> None:
    hosts = names.pop("hosts", ())
    der = read_der(authority.issue(*hosts, **names)[0])  # type: ignore[misc, arg-type]  # as in the table
    if expected is None:
        with pytest.raises(ValueError, match="must have one"):
            read_holder(der, part)
    else:
        holder, expires_ms = read_holder(der, part)
        assert holder == expected and expires_ms > 0


async def test_patterns_hold_the_holders_name_as_one_segment(authority: Authority) -> None:
    settings = access(certificate_subscribe=("/news/**",), certificate_publish=("/devices/{identity}/**",))
    authorizer = CertificateAuthorizer(None, settings, "subject_cn", ())
    granted = await authorizer.connect(ask(read_der(authority.issue(client="d1")[0])))
    assert isinstance(granted, Grant) and granted.identity == "d1" and granted.expires_ms is not None
    assert granted.rules == (Rule.allow("/news/**", "subscribe"), Rule.allow("/devices/d1/**", "publish"))


@pytest.mark.parametrize("name", ["**", "*", "a/b", "/", "$node", "a/**", "a\tb", "+", "#", "%c"])
async def test_62_no_name_becomes_more_than_a_segment(authority: Authority, name: str) -> None:
    settings = access(certificate_publish=("/devices/{identity}/**",))
    authorizer = CertificateAuthorizer(None, settings, "subject_cn", ())
    answer = await authorizer.connect(ask(read_der(authority.issue(client=name, file="odd")[0])))
    if name in ("+", "#", "%c"):  # of no meaning in patterns: a plain name like any other
        assert isinstance(answer, Grant) and answer.rules == (Rule.allow(f"/devices/{name}/**", "publish"),)
    else:
        assert isinstance(answer, Refusal) and answer.code == Code.CONNECT_REFUSED


async def test_a_token_decides_where_one_is_shown_and_an_authorizer_of_yours_is_told_the_name(
    authority: Authority,
) -> None:
    der = read_der(authority.issue(client="ann")[0])
    settings = access(certificate_publish=("/a",))
    authorizer = CertificateAuthorizer(Inner(), settings, "subject_cn", ())
    decisions = [
        await authorizer.connect(question) for question in (ask(der, "t"), ask(None, "t"), ask(None), ask(der))
    ]
    assert [one.identity for one in decisions if isinstance(one, Grant)] == ["t/None", "t/None", "None/None", "ann"]
    own = CertificateAuthorizer(Inner(), settings, "subject_cn", (), leaves_rights=True)
    answer = await own.connect(ask(der))
    assert isinstance(answer, Grant) and answer.identity == "None/ann"
    assert await own.publish(SelectorQuestion(1, "ann", "/x"))
    assert not await CertificateAuthorizer(None, settings, "subject_cn", ()).publish(SelectorQuestion(1, "ann", "/x"))


async def test_where_tokens_mean_nothing_a_certificate_does(authority: Authority) -> None:
    der = read_der(authority.issue(client="ann")[0])
    authorizer = CertificateAuthorizer(None, access(), "subject_cn", (Rule.allow("/**"),))
    for question in (ask(der), ask(der, "whatever")):
        answer = await authorizer.connect(question)
        assert isinstance(answer, Grant) and answer.identity == "ann"
    assert isinstance(await authorizer.connect(ask(None)), Refusal)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="client_certificates"):
        check_config(build_config({"tls": {"client_identity": "subject_cn"}}, {}, {}))
    for template in ("/a/{identity}x", "/a/{who}", "nothing", "/a/{identity}/**/b"):
        with pytest.raises(ConfigInvalid):
            build_config({"access": {"certificate_publish": [template]}}, {}, {})


async def test_no_more_than_a_few_certificates_may_come_with_one(authority: Authority) -> None:
    der = read_der(authority.issue(client="ann")[0])
    authorizer = CertificateAuthorizer(None, access(), "subject_cn", ())
    for count, is_refused in ((CHAIN_MAX, False), (CHAIN_MAX + 1, True)):
        answer = await authorizer.connect(replace(ask(der), certificate_chain=(der,) * count))
        assert isinstance(answer, Refusal) == is_refused
