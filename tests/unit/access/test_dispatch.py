"""The built-in issuer before a mode's own judge: which judge checks which token, and which identities are reserved."""

from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule
from godwit.access.access_mode import LISTENING, build_access_mode
from godwit.access.answers import refuse_reserved
from godwit.access.dispatch import DispatchAuthorizer, is_signed_by_dispatch
from godwit.codes import Code
from godwit.config import AccessConfig
from godwit.config.dispatch import DispatchConfig

KEY = Ed25519PrivateKey.generate()
TOKEN = "correct-horse-battery-staple"


def sign(subject: str = "shop/ann", issuer: str = "godwit-dispatch") -> str:
    permissions = {"allow": {"subscribe": ["/$inbox/shop/ann"]}}
    return jwt.encode({"iss": issuer, "sub": subject, "exp": 4_000_000_000, "permissions": permissions}, KEY, "EdDSA")


def ask(token: str | None) -> ConnectQuestion:
    return ConnectQuestion(1, token, None, "127.0.0.1:1")


def build(tmp_path: Path, access: AccessConfig, key: Ed25519PrivateKey = KEY) -> DispatchAuthorizer:
    keys = tmp_path / "dispatch.pem"
    keys.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    mode = build_access_mode(access, dispatch=DispatchConfig(token_keys_file=str(keys)))
    assert mode.judges_tokens and isinstance(mode.authorizer, DispatchAuthorizer)
    return mode.authorizer


async def test_a_token_of_dispatch_holds_what_it_says_and_what_everybody_may(tmp_path: Path) -> None:
    judge = build(tmp_path, AccessConfig("basic", (TOKEN,)))
    granted = await judge.connect(ask(sign()))
    assert isinstance(granted, Grant) and granted.identity == "godwit-dispatch:shop/ann"
    assert granted.rules == (*LISTENING, Rule.allow("/$inbox/shop/ann", "subscribe"))
    assert granted.configured == 1 and judge.list_rules() == {granted.authority: [("/**", "subscribe", "allow")]}
    assert granted.authority == "jwt:godwit-dispatch" and refuse_reserved(granted) is granted
    renewed = await judge.update_token(ask(sign()))
    assert isinstance(renewed, Grant) and renewed.identity == granted.identity
    await judge.stop()


async def test_receivers_lose_what_clients_without_a_token_lose(tmp_path: Path) -> None:
    judge = build(tmp_path, AccessConfig("jwt", anonymous_subscribe=("/a", "/b")))
    judge.adopt(build(tmp_path, AccessConfig("jwt", anonymous_subscribe=("/a", "/b", "/c"))))
    assert judge.take_withdrawn() == []
    judge.adopt(build(tmp_path, AccessConfig("jwt", anonymous_subscribe=("/a", "/c"))))
    assert judge.take_withdrawn() == [("jwt:godwit-dispatch", Code.RIGHTS_CHANGED)]
    assert judge.take_withdrawn() == []
    granted = await judge.connect(ask(sign()))
    assert isinstance(granted, Grant) and Rule.allow("/b", "subscribe") not in granted.rules
    await judge.stop()


async def test_other_tokens_go_to_the_mode(tmp_path: Path) -> None:
    basic = build(tmp_path, AccessConfig("basic", (TOKEN,)))
    assert isinstance(await basic.connect(ask(TOKEN)), Grant)
    assert isinstance(await basic.update_token(ask(TOKEN)), Grant)
    assert isinstance(await basic.connect(ask(sign(issuer="else"))), Refusal)
    assert len(basic.adopt(build(tmp_path, AccessConfig("basic", (TOKEN[::-1],))))) == 1
    none = build(tmp_path, AccessConfig())
    granted = await none.connect(ask("whatever"))
    assert isinstance(granted, Grant) and granted.identity == "anonymous"


def test_only_dispatch_names_its_receivers() -> None:
    for authority in ("authorizer", "jwt:else", "certificate"):
        refused = refuse_reserved(Grant("godwit-dispatch:shop/ann", authority=authority, source="godwit-dispatch"))
        assert isinstance(refused, Refusal) and refused.code is Code.CONNECT_REFUSED
    assert isinstance(refuse_reserved(Grant("godwit-dispatcher")), Grant)


async def test_a_users_authorizer_names_no_source(tmp_path: Path) -> None:
    judge = build(tmp_path, AccessConfig("custom", authorizer=f"{__name__}:Impostor"))
    await judge.start()
    granted = await judge.connect(ask("x"))
    assert isinstance(granted, Grant) and granted.source is None
    await judge.stop()


def test_what_is_no_token_is_not_of_dispatch() -> None:
    assert not any(map(is_signed_by_dispatch, (None, "", "a.b", "a.b.c", sign(issuer="else"))))


class Impostor(Authorizer):
    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return Grant("x", source="godwit-dispatch")


async def test_a_key_that_left_the_file_signs_for_no_receiver_after_a_reload(tmp_path: Path) -> None:
    judge = build(tmp_path, AccessConfig("basic", (TOKEN,)))
    granted = await judge.connect(ask(sign()))
    assert isinstance(granted, Grant)
    other = build(tmp_path, AccessConfig("basic", (TOKEN,)), Ed25519PrivateKey.generate())
    judge.adopt(other)
    assert judge.take_withdrawn() == [(granted.source, Code.TOKEN_INVALID)]
    refused = await judge.connect(ask(sign()))
    assert isinstance(refused, Refusal) and refused.code == Code.TOKEN_INVALID
    assert judge.list_trusted() == other.list_trusted()
    await judge.stop()
