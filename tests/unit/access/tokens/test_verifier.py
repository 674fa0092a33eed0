"""The answers for an invalid token: the verifier's own sentences, never those of the library."""

import base64
import json
import time
from typing import Any

import jwt
import pytest

from godwit.access.tokens.keys import read_keys
from godwit.access.tokens.verifier import SIGNATURE_WRONG, TokenRefused, read_outline, verify
from godwit.config.tree import IssuerConfig

SECRET, NAME = b"s" * 64, "https://login.example"


def sign(**given: Any) -> str:
    claimed = {"iss": NAME, "sub": "ann", "exp": int(time.time()) + 600, **given}
    return jwt.encode({name: value for name, value in claimed.items() if value is not None}, SECRET, "HS256")


def refusal(token: str, **given: Any) -> str:
    """The sentence that a token is refused with."""
    trusted = IssuerConfig(NAME, algorithms=("HS256",), keys_file="unused", **given)
    with pytest.raises(TokenRefused) as refused:
        verify(token, read_outline(token), trusted, read_keys(SECRET))
    return str(refused.value)


def damaged(part: str) -> str:
    return f"the token is damaged: its {part} cannot be read"


def test_a_signature_that_was_cut_or_changed_is_called_that() -> None:
    token = sign()
    signed, _, signature = token.rpartition(".")
    said = {refusal(f"{signed}.{signature[:length]}") for length in range(1, len(signature))}
    assert said == {SIGNATURE_WRONG, damaged("signature")}
    for place, was in enumerate(signature):
        for put in "Aa_!= é\0":
            if put != was:
                said.add(refusal(f"{signed}.{signature[:place]}{put}{signature[place + 1 :]}"))
    assert said == {SIGNATURE_WRONG, damaged("signature"), refusal("one.two")}
    for padded in ("QQ=", "QQ==", "QUE="):
        assert refusal(f"{signed}.{padded}") == damaged("signature")


def test_one_wrong_character_anywhere_is_told_in_own_words() -> None:
    token = sign(nbf=1, jti="t")
    known = {
        SIGNATURE_WRONG,
        *map(damaged, ("header", "claims", "signature")),
        refusal("one.two"),
        "the token names no algorithm or no issuer",
        "the token's algorithm is not one of its issuer's",
    }
    said = set()
    for place, was in enumerate(token):
        for put in "Az0-!.":
            if put != was:
                said.add(refusal(token[:place] + put + token[place + 1 :]))
        said.add(refusal(token[:place] + token[place + 1 :]))
        said.add(refusal(token[:place]))
    assert said <= known and {SIGNATURE_WRONG, damaged("header"), damaged("claims")} <= said


@pytest.mark.parametrize(
    ("claimed", "audience", "says"),
    [
        ({"exp": None}, "", "the token lacks the claim exp"),
        ({}, "here", "the token lacks the claim aud"),
        ({"aud": "there"}, "here", "the token is for another audience (aud)"),
        ({"aud": "there"}, "", "the token is for an audience (aud), and none is configured for its issuer"),
        ({"aud": [1]}, "here", "the token is for another audience (aud)"),
        ({"nbf": 2**40}, "", "the token is not valid yet"),
        ({"exp": 1}, "", "the token has expired"),
    ],
)
def test_a_claim_that_keeps_its_holder_out_is_named(claimed: dict[str, Any], audience: str, says: str) -> None:
    assert refusal(sign(**claimed), audience=audience) == says


@pytest.mark.parametrize("claimed", [{"exp": "soon"}, {"exp": [1]}, {"nbf": "x"}, {"iat": "x"}, {"jti": 7}, {"sub": 7}])
def test_a_claim_of_the_wrong_kind_is_named_among_few(claimed: dict[str, Any]) -> None:
    # by hand: the library signs no such claims
    head, body = ({"alg": "HS256"}, {"iss": NAME, "sub": "ann", "exp": 2**40, **claimed})
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in (head, body)
    )
    signature = jwt.get_algorithm_by_name("HS256").sign(signed.encode(), SECRET)
    said = refusal(f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}")
    assert next(iter(claimed)) in said and "claims" in said


def test_every_sentence_has_room_in_a_close_frame() -> None:
    sentences = [SIGNATURE_WRONG, damaged("signature"), refusal("x"), refusal(sign(jti=7)), refusal(sign(exp="soon"))]
    sentences += [refusal(sign(aud="there")), refusal(sign(), audience="here"), refusal(sign(exp=None))]
    for reason in sentences:
        assert len(json.dumps({"name": "TokenInvalid", "reason": reason}, separators=(",", ":"))) <= 123, reason
