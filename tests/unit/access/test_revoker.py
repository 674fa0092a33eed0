"""A revocation returns what it ended, with a warning if the name was never seen."""

from typing import Any

import pytest

from godwit.access.revocation import Revocation, Revocations, SeenNames
from godwit.access.revoker import Revoker


def make(ended: tuple[int, int, int], ends: list[Any]) -> Revoker:
    def revoke(*order: object) -> tuple[int, int, int]:
        ends.append(order)
        return ended

    seen = SeenNames()
    seen.add("ann", "t1")
    return Revoker(Revocations(same_holder=("certificate", "basic")), revoke, seen, lambda *event: ends.append(event))


async def test_what_it_ended_is_answered_and_audits_hear_of_it() -> None:
    ends: list[Any] = []
    revoker = make((2, 1, 0), ends)
    answer = await revoker.revoke(Revocation(identity="bob", tenant="acme", authority="basic"))
    assert (answer["connections"], answer["sessions"], answer["wills"], answer["kept"]) == (2, 1, 0, True)
    assert answer["warning"] == "" and answer["tenant"] == "acme"
    assert ends == [("bob", None, 4005, "acme", "certificate"), ("bob", "bob", "acme", "basic")]
    lifted = await revoker.lift({"identity": "bob", "tenant": "acme", "authority": "basic"})
    assert lifted is not None and lifted["lifted"] and await revoker.lift({"identity": "bob"}) is None


async def test_a_name_that_nobody_came_by_is_revoked_with_a_warning() -> None:
    revoker = make((0, 0, 0), [])
    assert (await revoker.revoke(Revocation(identity="ann")))["warning"] == ""
    assert (await revoker.revoke(Revocation(token_id="t1")))["warning"] == ""
    assert "check the spelling" in (await revoker.revoke(Revocation(identity="amm")))["warning"]
    with pytest.raises(ValueError, match="in the past"):
        await revoker.revoke(Revocation(identity="ann", until_ms=1))
