"""The grant of verified claims: the patterns of an issuer with its holder's names."""

from typing import Any

import pytest

from godwit.access.rights import Grant, Rule
from godwit.access.tokens.claims import ClaimsInvalid, list_rules, read_grant
from godwit.config.tree import IssuerConfig


def read(name: str, **given: Any) -> Grant:
    issuer = IssuerConfig("https://id", algorithms=("HS256",), keys_file="unused", **given)
    return read_grant({"sub": name, "exp": 2_000_000_000, "org": "acme"}, issuer)


def test_a_holders_name_stands_in_the_patterns_of_its_issuer() -> None:
    grant = read("ann", identity_prefix="p:", tenant_claim="org", publish=("/u/{tenant}/{identity}/**",))
    assert list(grant.rules) == [Rule.allow("/u/p:acme/p:ann/**", "publish")]


def test_a_grant_says_which_rules_come_from_the_configuration() -> None:
    issuer = IssuerConfig("https://id", ("HS256",), keys_file="unused", subscribe=("/a",), publish=("/u/{identity}",))
    claims = {"sub": "ann", "exp": 2_000_000_000, "permissions": {"allow": {"publish": ["/a"]}}}
    grant = read_grant(claims, issuer)
    assert grant.configured == len(list_rules(issuer)) == 2
    assert grant.rules[grant.configured :] == (Rule.allow("/a", "publish"),)
    assert list_rules(issuer) == [("/a", "subscribe", "allow"), ("/u/{identity}", "publish", "allow")]


@pytest.mark.parametrize("name", ["a/b", "*", "**", "$node"])
def test_a_name_that_is_no_segment_is_refused_where_it_would_be_one(name: str) -> None:
    with pytest.raises(ClaimsInvalid, match="not valid as a segment"):
        read(name, publish=("/u/{identity}/**",))
    assert read(name, publish=("/u/*",)).identity == name
