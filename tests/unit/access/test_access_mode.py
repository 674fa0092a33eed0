"""The built-in access modes, and configurations that they refuse."""

from pathlib import Path
from typing import Any

import pytest

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule
from godwit.access.access_mode import (
    EVERYTHING,
    LISTENING,
    BasicAuthorizer,
    build_access_mode,
    load_authorizer,
    read_tokens,
)
from godwit.access.hosted import HostedAuthorizer
from godwit.codes import Code
from godwit.config import AccessConfig
from godwit.config.tls import TlsConfig
from godwit.config.tree import IssuerConfig
from godwit.errors import ConfigInvalid

TOKEN, OTHER = "correct-horse-battery-staple", "another-token-of-length"


class Loaded(Authorizer):
    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return Refusal()


loaded = Loaded()
not_one = object()


def ask(token: str | None) -> ConnectQuestion:
    return ConnectQuestion(1, token, None, "127.0.0.1:1")


def test_none_allows_everything_and_asks_nobody() -> None:
    mode = build_access_mode(AccessConfig())
    assert mode.anonymous == EVERYTHING and mode.authorizer is None


async def test_basic_lets_everybody_listen_and_token_holders_publish(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# publishers\n\n  {OTHER}  \n")
    mode = build_access_mode(AccessConfig("basic", (TOKEN,), str(file)))
    assert mode.anonymous == (Rule.allow("/**", "subscribe"),)
    authorizer = mode.authorizer
    assert authorizer is not None
    for token in (TOKEN, OTHER):
        granted = await authorizer.connect(ask(token))
        assert isinstance(granted, Grant) and granted.rules == EVERYTHING
        assert token not in granted.identity
    assert isinstance(await authorizer.connect(ask(None)), Grant)
    for token in ("", "wrong", TOKEN + "x", TOKEN[:-1], "é" * 20):
        refused = await authorizer.connect(ask(token))
        assert isinstance(refused, Refusal) and refused.code is Code.TOKEN_INVALID
        assert "wrong" not in refused.reason


@pytest.mark.parametrize(("content", "why"), [("", "no token"), ("# only\n", "no token"), ("short\n", "at least 16")])
def test_a_token_file_that_cannot_be_right_is_refused(tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(content)
    with pytest.raises(ConfigInvalid, match=why) as caught:
        read_tokens(file)
    assert "short" not in str(caught.value)
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "access.publish_tokens_file"):
        read_tokens(tmp_path / "missing")


def test_custom_loads_an_object_a_class_or_a_maker() -> None:
    for attribute in ("loaded", "Loaded"):
        mode = build_access_mode(AccessConfig("custom", authorizer=f"{__name__}:{attribute}"))
        assert mode.anonymous is None and isinstance(mode.authorizer, HostedAuthorizer)
        assert isinstance(mode.authorizer.inner, Loaded)


@pytest.mark.parametrize(
    ("name", "why"),
    [("no_such:X", "ModuleNotFound"), ("json:none", "AttributeError"), ("json:JSONDecoder", "has no method connect")],
)
def test_what_is_no_authorizer_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        load_authorizer(name)


async def test_replaced_tokens_hold_at_once_and_the_gone_are_named() -> None:
    authorizer = BasicAuthorizer((TOKEN, OTHER))
    granted = await authorizer.connect(ask(TOKEN))
    assert isinstance(granted, Grant)
    assert authorizer.adopt(BasicAuthorizer((OTHER,))) == [granted.identity]
    assert isinstance(await authorizer.connect(ask(TOKEN)), Refusal)
    assert isinstance(await authorizer.connect(ask(OTHER)), Grant)


async def test_each_mode_names_who_may_vouch_for_a_holder(tmp_path: Path) -> None:
    def trusted(access: AccessConfig, *issuers: IssuerConfig, joined: tuple[str, ...] = ()) -> list[str]:
        mode = build_access_mode(access, issuers, TlsConfig(client_identity="subject_cn"))
        return mode.list_trusted(lambda one: joined[0] if one in joined else one)

    read = "certificate\nsubject_cn"
    assert trusted(AccessConfig()) == ["anonymous", read]
    basic = AccessConfig("basic", (TOKEN,))
    granted = await BasicAuthorizer((TOKEN,)).connect(ask(TOKEN))
    assert isinstance(granted, Grant)
    assert trusted(basic) == ["anonymous", read, f"basic\n{granted.identity}"]
    assert trusted(basic, joined=("people", "basic"))[-1] == f"people\n{granted.identity}"
    custom = AccessConfig("custom", authorizer=f"{__name__}:loaded")
    by_authorizer = f"{read} for an authorizer"
    assert trusted(custom) == ["anonymous", by_authorizer, "authorizer"], "who signed a certificate counts there, too"
    (tmp_path / "secret").write_text("s" * 64)
    named = IssuerConfig("https://id", keys_file=str(tmp_path / "secret"), algorithms=("HS256",))
    fetched = IssuerConfig("https://far", keys_url="https://far/keys.json")
    by_key, by_issuer = trusted(AccessConfig("jwt"), named, fetched, joined=("people", "jwt:https://far"))[-2:]
    assert by_key.startswith("jwt:https://id\n") and by_issuer.startswith("jwt:https://far\n"), (
        "its source says the issuer"
    )
    assert (by_key.count("\n"), by_issuer.count("\n")) == (2, 1), "how it reads a token, and the key where it is known"


def test_each_mode_lists_what_the_configuration_gives_the_holders_of_an_authority(tmp_path: Path) -> None:
    def rules(mode: str, **more: Any) -> dict[str, list[tuple[str, str, str]]]:
        access = AccessConfig(mode, certificate_publish=("/c/{identity}",), **more)
        issuer = IssuerConfig("https://id", keys_url="https://id/keys.json", publish=("/t/{tenant}",))
        return build_access_mode(access, (issuer,), TlsConfig(client_identity="subject_cn")).list_rules()

    own = ("/c/{identity}", "publish", "allow")
    listening, everything = (
        [(rule.pattern, *map(str, (rule.actions, rule.verdict))) for rule in basis] for basis in (LISTENING, EVERYTHING)
    )
    assert rules("none") == {"certificate": [*everything, own]}
    assert rules("basic", publish_tokens=(TOKEN,)) == {"certificate": [*listening, own]}
    assert rules("jwt") == {"certificate": [own], "jwt:https://id": [("/t/{tenant}", "publish", "allow")]}
    assert rules("custom", authorizer=f"{__name__}:loaded") == {}, "its authorizer gives all rights"
