"""Revocations stay in force until their end, also over a restart."""

import asyncio
from pathlib import Path

import pytest

from godwit.access.revocation import Revocation, Revocations, SeenNames


def keep(revoked: Revocations) -> bool:
    async def run() -> bool:
        is_kept = await revoked.keep()
        if revoked.log is not None:
            await revoked.log.stop()
        return is_kept

    return asyncio.run(run())


def test_identities_and_token_ids_are_two_things() -> None:
    revoked = Revocations()
    revoked.add(Revocation(identity="ann"))
    revoked.add(Revocation(token_id="t1"))
    assert revoked.covers("ann", None) and revoked.covers("ann", "t9") and revoked.covers("bob", "t1")
    assert not revoked.covers("t1", None) and not revoked.covers("bob", "ann")
    assert revoked.lift(identity="ann") and not revoked.lift(identity="ann") and not revoked.lift(identity="t1")
    assert not revoked.covers("ann", None) and len(revoked) == 1


def test_a_name_is_all_of_that_name_unless_a_tenant_or_an_authority_is_given() -> None:
    revoked = Revocations(same_holder=("certificate", "basic"))
    revoked.add(Revocation(identity="ann", tenant="acme"))
    revoked.add(Revocation(identity="bob", authority="certificate"))
    assert revoked.covers("ann", None, "acme", "jwt:a") and revoked.covers("ann", None, "acme", "basic")
    assert not revoked.covers("ann", None, "", "jwt:a") and not revoked.covers("ann", None, "umbrella", "jwt:a")
    assert revoked.covers("bob", None, "acme", "certificate") and revoked.covers("bob", None, "", "basic")
    assert not revoked.covers("bob", None, "acme", "jwt:a")
    assert not revoked.lift(identity="ann") and revoked.lift(identity="ann", tenant="acme")


def test_one_with_an_end_ends() -> None:
    now = [1000.0]
    revoked = Revocations(now_ms=lambda: now[0])
    revoked.add(Revocation(identity="ann", until_ms=2000))
    assert revoked.covers("ann", None) and len(revoked.list()) == 1
    now[0] = 2000
    assert not revoked.covers("ann", None) and revoked.list() == []


def test_they_outlive_the_node(tmp_path: Path) -> None:
    revoked = Revocations(tmp_path)
    for one in (
        Revocation(identity="ann", tenant="acme"),
        Revocation(token_id="t1", until_ms=2**62),
        Revocation(token_id="t0", until_ms=1),
        Revocation(identity="bob"),
    ):
        revoked.add(one)
    revoked.lift(identity="bob")
    assert keep(revoked)
    assert [one.key for one in Revocations(tmp_path).list()] == [("ann", None, "acme", None), (None, "t1", None, None)]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"identity": "a", "token_id": "b"},
        {"identity": ""},
        {"identity": 5},
        {"token_id": "x" * 2_000},
        *({"identity": "a", "until_ms": end} for end in (-1, 1.8e12, float("nan"), True, "1800000000000", [1])),
        {"identity": "a", "authority": ""},
    ],
)
def test_what_names_nobody_or_two_is_refused(given: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Revocation(**given)  # type: ignore[arg-type]  # what a request may hold


@pytest.mark.parametrize(
    ("until_ms", "message"), [(1_700_000_000_000, "in the past"), (1_900_000_000, "1900000000000"), (5, "in the past")]
)
def test_an_end_in_the_past_or_in_seconds_is_refused(until_ms: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Revocation(identity="ann", until_ms=until_ms).check_end(1_795_000_000_000)
    Revocation(identity="ann", until_ms=1_795_000_000_001).check_end(1_795_000_000_000)


def test_names_are_remembered_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.access.revocation.NAMES_MAX", 3)
    seen = SeenNames()
    seen.add("ann", None)
    seen.add("bob", "t1")
    assert "ann" in seen and "t1" in seen and "eve" not in seen
    seen.add("eve")
    assert "ann" not in seen and "bob" in seen
