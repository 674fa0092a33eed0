"""Rules and grants that exist are ones the engine accepts."""

import pytest

from godwit.access import Action, Grant, Refusal, Rule, Verdict
from godwit.access.rights import IDENTITY_BYTES_MAX, RULES_MAX


def test_rules_say_what_they_are() -> None:
    assert Rule.allow("/a/**") == Rule("/a/**", Action.BOTH, Verdict.ALLOW)
    assert Rule.deny("/a", "publish") == Rule("/a", Action.PUBLISH, Verdict.DENY)
    assert Rule.ask("/a/*", "subscribe") == Rule("/a/*", Action.SUBSCRIBE, Verdict.ASK)


@pytest.mark.parametrize(("pattern", "actions"), [("a", "both"), ("/a/**/b", "both"), ("/a", "read"), ("", "both")])
def test_what_is_no_rule_is_refused(pattern: str, actions: str) -> None:
    with pytest.raises(ValueError):
        Rule.allow(pattern, actions)


@pytest.mark.parametrize("identity", ["", "a\nb", "a\x00", "é" * IDENTITY_BYTES_MAX])
def test_an_identity_is_short_printable_text(identity: str) -> None:
    with pytest.raises(ValueError, match="identity"):
        Grant(identity)


def test_a_grant_is_bounded() -> None:
    assert Grant("ann", [Rule.allow("/a")], 978_307_200_000).rules == (Rule.allow("/a"),)
    with pytest.raises(ValueError, match="rules"):
        Grant("ann", [Rule.allow("/a")] * (RULES_MAX + 1))
    with pytest.raises(ValueError, match="expires_ms"):
        Grant("ann", expires_ms=-1)
    with pytest.raises(ValueError, match=r"Grant\.expires_ms must be Unix time in milliseconds"):
        Grant("ann", expires_ms=978_307_199_999)
    assert Grant("ann", expires_ms=0).expires_ms == 0


def test_a_refusal_closes() -> None:
    assert Refusal("no", 4002).code.name == "TOKEN_INVALID"  # type: ignore[arg-type]  # a number will do
    for code in (1_000, 1_001, 1_011, 4_101):
        with pytest.raises(ValueError, match="not a closing code"):
            Refusal("no", code)  # type: ignore[arg-type]  # a number will do
