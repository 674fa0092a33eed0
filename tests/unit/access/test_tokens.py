"""Tokens: their grants, and attacks with forged ones. Cases 40 to 45 of the hostile input."""

import base64
import hmac
import json
import time
from typing import Any, NamedTuple

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from godwit.access import ConnectQuestion, Grant, Refusal, Rule
from godwit.access.tokens import TokenAuthorizer
from godwit.access.tokens.claims import ClaimsInvalid, read_grant, read_rules
from godwit.access.tokens.keys import KeyRing, read_keys
from godwit.access.tokens.verifier import TOKEN_BYTES_MAX, TokenRefused, read_outline, verify
from godwit.codes import Code
from godwit.config.tree import IssuerConfig
from godwit.errors import AuthorizerFailed

RSA = rsa.generate_private_key(65_537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
SECRET = b"s" * 64
NAME = "https://login.example"


class In(NamedTuple):
    """A moment so many seconds after the test begins."""

    seconds: int


def pem(key: Any) -> bytes:
    public: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public


def claims(**given: Any) -> dict[str, Any]:
    claimed = {"iss": NAME, "sub": "ann", "exp": int(time.time()) + 600, **given}
    return {name: value for name, value in claimed.items() if value is not None}


def issuer(*algorithms: str, **given: Any) -> IssuerConfig:
    return IssuerConfig(NAME, algorithms=algorithms, keys_file="unused", **given)


def check(token: str, keys: bytes | KeyRing, *algorithms: str, **given: Any) -> Grant:
    ring = keys if isinstance(keys, KeyRing) else read_keys(keys)
    trusted = issuer(*algorithms, **given)
    return read_grant(verify(token, read_outline(token), trusted, ring), trusted)


def encode(part: dict[str, Any] | bytes) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forge(header: dict[str, Any], claimed: dict[str, Any], secret: bytes, digest: str = "sha256") -> str:
    """A token with an HMAC over whatever header, as no library would make it."""
    body = f"{encode(header)}.{encode(claimed)}"
    return f"{body}.{encode(hmac.digest(secret, body.encode(), digest))}"


@pytest.mark.parametrize(
    ("key", "public", "algorithms"),
    [
        (RSA, pem(RSA), ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        (EC, pem(EC), ("ES256",)),
        (ED, pem(ED), ("EdDSA",)),
        (SECRET, SECRET, ("HS256", "HS384", "HS512")),
    ],
    ids=["RS", "ES", "EdDSA", "HS"],
)
def test_every_algorithm_verifies_what_its_key_signed_and_nothing_else(
    key: Any, public: bytes, algorithms: tuple[str, ...]
) -> None:
    for algorithm in algorithms:
        token = jwt.encode(claims(), key, algorithm)
        assert check(token, public, algorithm).identity == "ann"
        head, body, signature = token.split(".")
        raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
        raw[len(raw) // 2] ^= 1
        for bad in (
            f"{head}.{body}.{encode(bytes(raw))}",
            f"{head}.{encode(claims(sub='root'))}.{signature}",
            token[:-8],
        ):
            with pytest.raises(TokenRefused):
                check(bad, public, algorithm)


def test_40_a_public_key_never_serves_as_a_secret_and_none_is_no_algorithm() -> None:
    public = pem(RSA)
    for digest, algorithm in (("sha256", "HS256"), ("sha512", "HS512")):
        token = forge({"alg": algorithm, "typ": "JWT"}, claims(), public, digest)
        for trusted in (("RS256",), ("RS256", "ES256", "EdDSA"), (algorithm,)):
            with pytest.raises(TokenRefused):
                check(token, public, *trusted)
    for name in ("none", "None", "NONE", "nOnE", "", "HS1", "RS256 ", "../etc/passwd"):
        for signature in ("", "AA"):
            token = f"{encode({'alg': name})}.{encode(claims())}.{signature}"
            with pytest.raises(TokenRefused):
                check(token, public, "RS256")
    for extra in ({"crit": ["exp"]}, {"crit": []}, {"b64": False, "crit": ["b64"]}):
        with pytest.raises(TokenRefused, match="extension"):
            check(forge({"alg": "HS256", **extra}, claims(), SECRET), SECRET, "HS256")


@pytest.mark.parametrize(
    ("claimed", "is_expired"),
    [
        ({"exp": In(-1)}, True),
        ({"exp": None}, False),
        ({"exp": 2**63}, False),
        ({"exp": -(2**63)}, None),
        ({"exp": 1e400}, False),
        ({"exp": True}, None),
        ({"exp": "1e999"}, False),
        ({"exp": [1]}, False),
        ({"nbf": In(6000)}, False),
        ({"nbf": "x"}, False),
        ({"iss": "https://login.example.evil"}, False),
        ({"aud": "elsewhere"}, False),
        ({"aud": [1]}, False),
    ],
)
def test_41_time_issuer_and_audience_are_held_to(claimed: dict[str, Any], is_expired: bool | None) -> None:
    now_s = int(time.time())  # of the test, and not of the collection: the suite in between may take minutes
    claimed = {name: now_s + value.seconds if isinstance(value, In) else value for name, value in claimed.items()}
    with pytest.raises((TokenRefused, ClaimsInvalid)) as refused:
        check(jwt.encode(claims(**claimed), SECRET, "HS256"), SECRET, "HS256")
    if is_expired is not None:
        assert getattr(refused.value, "is_expired", False) is is_expired


def test_a_token_made_a_second_ahead_is_good_and_one_that_begins_soon_may_come_again() -> None:
    now_s = time.time()
    assert check(jwt.encode(claims(iat=now_s + 30), SECRET, "HS256"), SECRET, "HS256")
    for iat in ("x", True, [1]):
        with pytest.raises(TokenRefused, match="iat"):
            check(jwt.encode(claims(iat=iat), SECRET, "HS256"), SECRET, "HS256")
    for ahead_s, is_early in ((30, True), (6_000, False)):
        with pytest.raises(TokenRefused, match="not valid yet") as refused:
            check(jwt.encode(claims(nbf=now_s + ahead_s), SECRET, "HS256"), SECRET, "HS256")
        assert refused.value.is_early is is_early


def test_41_an_audience_that_is_asked_for_must_be_there() -> None:
    for claimed, is_good in (({}, False), ({"aud": "b"}, False), ({"aud": "a"}, True), ({"aud": ["b", "a"]}, True)):
        token = jwt.encode(claims(**claimed), SECRET, "HS256")
        if is_good:
            assert check(token, SECRET, "HS256", audience="a")
        else:
            with pytest.raises(TokenRefused):
                check(token, SECRET, "HS256", audience="a")


def test_41_a_leeway_reaches_as_far_as_it_says() -> None:
    token = jwt.encode(claims(exp=int(time.time()) - 5), SECRET, "HS256")
    assert check(token, SECRET, "HS256", leeway_ms=60_000)
    with pytest.raises(TokenRefused):
        check(token, SECRET, "HS256", leeway_ms=1_000)


def test_the_leeway_of_an_issuer_moves_the_one_end_of_a_token() -> None:
    assert read_grant({"sub": "ann", "exp": 1_800_000_000}, issuer(leeway_ms=60_000)).expires_ms == 1_800_000_060_000


async def test_42_nothing_that_a_token_names_is_opened() -> None:
    asked: list[str] = []

    async def fetch(url: str) -> bytes:
        asked.append(url)
        return json.dumps({"keys": [json.loads(jwt.algorithms.ECAlgorithm.to_jwk(EC.public_key()))]}).encode()

    trusted = IssuerConfig(NAME, algorithms=("ES256",), keys_url="https://login.example/keys")
    authorizer = TokenAuthorizer((trusted,), fetch=fetch)
    mine = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))
    headers = {
        "jku": "https://evil.example/keys",
        "x5u": "file:///etc/passwd",
        "jwk": mine,
        "kid": "https://evil.example/k",
    }
    stranger = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(TokenRefused):
        await authorizer.judge(jwt.encode(claims(), stranger, "ES256", headers=headers))
    with pytest.raises(TokenRefused):
        await authorizer.judge(jwt.encode(claims(iss="https://evil.example"), stranger, "ES256", headers=headers))
    assert set(asked) == {"https://login.example/keys"}
    await authorizer.stop()


async def test_43_the_same_key_id_of_two_issuers_are_two_keys(tmp_path: Any) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    issuers = []
    for number, key in enumerate((EC, other)):
        row = {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())), "kid": "k1"}
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps({"keys": [row]}))
        issuers.append(
            IssuerConfig(f"i{number}", algorithms=("ES256",), keys_file=str(file), identity_prefix=f"{number}/")
        )
    authorizer = TokenAuthorizer(tuple(issuers))
    headers = {"kid": "k1"}
    assert (await authorizer.judge(jwt.encode(claims(iss="i0"), EC, "ES256", headers=headers))).identity == "0/ann"
    assert (await authorizer.judge(jwt.encode(claims(iss="i1"), other, "ES256", headers=headers))).identity == "1/ann"
    for name, key in (("i0", other), ("i1", EC)):
        with pytest.raises(TokenRefused, match="not signed"):
            await authorizer.judge(jwt.encode(claims(iss=name), key, "ES256", headers=headers))
    await authorizer.stop()


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c.d",
        "x" * 1_000_000,
        "." * 1_000_000,
        "é.é.é",
        f"{encode(b'{' * 1000)}.{encode(b'{}')}.AA",
        f"{encode(b'[' * 1500)}.{encode(b'[' * 10_000)}.AA",
        f"{encode(b'[]')}.{encode(b'{}')}.AA",
        f"{encode({'alg': 5})}.{encode({'iss': 'x'})}.AA",
        f"{encode({'alg': 'RS256', 'kid': ['a']})}.{encode({'iss': 'x'})}.AA",
        f"{encode({'alg': 'RS256'})}.{encode({'iss': {}})}.AA",
        f"{encode({'alg': 'RS256', 'x': 'y' * 3000})}.{encode({'iss': 'x'})}.AA",
    ],
)
def test_44_what_is_no_token_is_refused_with_little_work(token: str) -> None:
    began = time.process_time()
    with pytest.raises(TokenRefused):
        read_outline(token)
    assert time.process_time() - began < 1


def test_44_very_many_claims_fit_no_token() -> None:
    token = jwt.encode(claims(**{f"c{number}": number for number in range(100_000)}), SECRET, "HS256")
    assert len(token) > TOKEN_BYTES_MAX
    with pytest.raises(TokenRefused, match="longer"):
        read_outline(token)


@given(st.text(max_size=200) | st.lists(st.text(max_size=60), min_size=3, max_size=3).map(".".join))
def test_44_no_text_is_more_than_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        check(token, SECRET, "HS256")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(
    ["allow", "deny", "subscribe", "publish", "both", "/a/**", ""]), inner)))  # fmt: skip
def test_permissions_are_rules_or_refused(permissions: Any) -> None:
    try:
        rules = read_rules(permissions, issuer("HS256"), {})
    except ValueError:
        return
    assert all(isinstance(rule, Rule) for rule in rules)


def test_permissions_become_rules_after_those_of_the_issuer() -> None:
    claimed = {"allow": {"both": ["/a/*"], "publish": []}, "deny": {"subscribe": ["/a/b"]}}
    token = jwt.encode(claims(permissions=claimed, jti="t"), SECRET, "HS256")
    grant = check(token, SECRET, "HS256", subscribe=("/news/**",), publish=("/in",), identity_prefix="x/")
    assert (grant.identity, grant.token_id) == ("x/ann", "t")
    assert list(grant.rules) == [
        Rule.allow("/news/**", "subscribe"),
        Rule.allow("/in", "publish"),
        Rule.allow("/a/*"),
        Rule.deny("/a/b", "subscribe"),
    ]


def ask(token: str | None) -> ConnectQuestion:
    return ConnectQuestion(1, token, None, "127.0.0.1:1")


async def test_a_verified_token_is_verified_once_and_not_past_its_end(tmp_path: Any) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    now = [time.time() * 1000]
    trusted = IssuerConfig(NAME, algorithms=("HS256",), keys_file=str(tmp_path / "key"))
    authorizer = TokenAuthorizer((trusted,), verified_tokens_max=2, now_ms=lambda: now[0])
    token = jwt.encode(claims(), SECRET, "HS256")
    for _ in range(5):
        assert isinstance(await authorizer.connect(ask(token)), Grant)
    assert authorizer.verifications == 1
    for name in ("b", "c"):
        await authorizer.judge(jwt.encode(claims(sub=name), SECRET, "HS256"))
    await authorizer.judge(token)
    assert authorizer.verifications == 4, "no more than two are remembered"
    now[0] += 601_000
    refused = await authorizer.connect(ask(token))
    assert isinstance(refused, Refusal) and refused.code == Code.TOKEN_EXPIRED
    # other keys: what the old ones verified is nothing any more
    (tmp_path / "key").write_bytes(b"t" * 64)
    now[0] -= 601_000
    authorizer.adopt(TokenAuthorizer((trusted,)))
    refused = await authorizer.connect(ask(token))
    assert isinstance(refused, Refusal) and refused.code == Code.TOKEN_INVALID
    refused = await authorizer.connect(ask(None))
    assert isinstance(refused, Refusal) and refused.code == Code.TOKEN_MISSING
    await authorizer.stop()


async def test_a_verified_token_is_remembered_no_longer_than_it_may_be_and_not_past_its_revocation(
    tmp_path: Any,
) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    now = [time.time() * 1000]
    trusted = IssuerConfig(NAME, algorithms=("HS256",), keys_file=str(tmp_path / "key"))
    authorizer = TokenAuthorizer((trusted,), verified_tokens_ms_max=60_000, now_ms=lambda: now[0])
    tokens = [jwt.encode(claims(sub=name, jti=f"t-{name}"), SECRET, "HS256") for name in ("ann", "bob", "eve")]

    async def verified() -> int:
        before = authorizer.verifications
        for token in tokens:
            assert isinstance(await authorizer.connect(ask(token)), Grant)
        return authorizer.verifications - before

    assert [await verified(), await verified()] == [3, 0]
    now[0] += 60_001
    assert [await verified(), await verified()] == [3, 0]
    await authorizer.stop()


def test_a_tenant_is_named_by_every_token_of_an_issuer_that_has_tenants() -> None:
    trusted = issuer("HS256", tenant_claim="org", identity_prefix="x:")
    assert read_grant(claims(org="acme"), trusted).tenant == "x:acme"
    for wrong in ({}, {"org": ""}, {"org": 7}, {"org": "a\nb"}, {"org": "a" * 300}):
        with pytest.raises(ClaimsInvalid):
            read_grant(claims(**wrong), trusted)
    assert read_grant(claims(org="acme"), issuer("HS256")).tenant == ""


async def test_45_without_keys_nobody_is_let_in_and_it_is_nobodys_fault() -> None:
    async def fetch(url: str) -> bytes:
        raise OSError("down")

    trusted = IssuerConfig(NAME, algorithms=("ES256",), keys_url="https://login.example/keys")
    authorizer = TokenAuthorizer((trusted,), fetch=fetch)
    with pytest.raises(AuthorizerFailed, match="cannot be fetched"):
        await authorizer.connect(ask(jwt.encode(claims(), EC, "ES256")))
    await authorizer.stop()


def test_weak_and_wrong_keys_are_refused() -> None:
    weak = pem(rsa.generate_private_key(65_537, 1024))
    odd = pem(ec.generate_private_key(ec.SECP256K1()))
    private = EC.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (
        b"",
        b"short",
        b"{}",
        b'{"keys": 5}',
        b'{"keys": []}',
        b"{" * 10,
        weak,
        odd,
        private,
        b"-----BEGIN X-----",
    ):
        with pytest.raises(ValueError):
            read_keys(content)
    assert len(read_keys(pem(RSA) + pem(EC) + pem(ED)).keys) == 3
    assert "sss" not in repr(read_keys(SECRET))


def test_keys_of_a_set_are_bound_to_what_they_say_they_are_for() -> None:
    row = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()))
    rows = [
        {**row, "kid": "a", "alg": "RS256"},
        {**row, "kid": "b", "use": "enc"},
        {**row, "kid": "c", "key_ops": ["encrypt"]},
        {**row, "kid": "d", "alg": "HS256"},
        {"kty": "oct", "k": encode(SECRET), "kid": "e"},
        {"kty": "strange"},
        "x",
    ]
    ring = read_keys(json.dumps({"keys": rows}).encode())
    assert [(key.key_id, sorted(key.algorithms)) for key in ring.keys] == [
        ("a", ["RS256"]),
        ("e", ["HS256", "HS384", "HS512"]),
    ]
    assert [key.key_id for key in ring.find("RS256", None)] == ["a"] and not ring.find("RS256", "e")
    assert ring.knows("a") and ring.knows(None) and not ring.knows("z")
