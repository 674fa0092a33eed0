"""An address that is unknown to its mail server is used once, for any receiver, until its suppression is deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.dispatch.conftest import Running
from tests.dispatch.email.test_email import DEADLINE_S, HI, Server, mailing


async def send(both: Running, name: str, to: dict[str, object]) -> dict[str, int]:
    """The counts of its e-mail once nothing is left to do."""
    assert (await both.api("PUT", f"/v1/notifications/{name}", {**HI, "to": to}))[0] == 202
    while (answer := (await both.api("GET", f"/v1/notifications/{name}"))[1])["state"] != "settled":
        pass
    return dict(answer["counts"].get("email", {}))


async def test_an_unknown_mailbox_is_asked_for_once_whoever_has_it(tmp_path: Path, runtime: Path) -> None:
    server, mail = Server("550 5.1.1 no such user"), {"channel": "email", "value": "Ann@mail.example"}
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        assert await send(both, "n1", {"receiver": "ann"}) == {"failed": 1}
        server.rcpt = "250 OK"
        _, answer = await both.api("GET", "/v1/suppressions/email/ann@mail.example")
        assert [(row["category"], row["reason"]) for row in answer["suppressions"]] == [("*", "bounced")]
        assert (await both.api("PUT", "/v1/receivers/ann/addresses/mail", mail))[0] == 200
        assert await send(both, "n2", {"receiver": "ann"}) == {"suppressed": 1}
        assert await send(both, "n3", {"address": mail}) == {"suppressed": 1}
        await both.api("PUT", "/v1/receivers/bob")
        await both.api("PUT", "/v1/receivers/bob/addresses/mail", mail)
        assert await send(both, "n4", {"receiver": "bob"}) == {"suppressed": 1}
        assert not server.taken
        assert (await both.api("DELETE", "/v1/suppressions/email/ann@mail.example"))[0] == 204
        assert await send(both, "n5", {"receiver": "bob"}) == {"sent": 1}


async def test_lifting_a_suppression_makes_its_addresses_valid_again(tmp_path: Path, runtime: Path) -> None:
    server = Server("550 5.1.1 no such user")
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        assert await send(both, "n1", {"receiver": "ann"}) == {"failed": 1}
        server.rcpt = "250 OK"
        assert await send(both, "n2", {"receiver": "ann"}) == {}, "an invalid address gets nothing"
        assert (await both.api("DELETE", "/v1/suppressions/email/ANN@mail.example"))[0] == 204
        _, answer = await both.api("GET", "/v1/receivers/ann")
        assert answer["addresses"][0]["state"] == "active"
        assert await send(both, "n3", {"receiver": "ann"}) == {"sent": 1}


async def test_a_sandbox_address_fails_every_time(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, Server()) as both:
        for name in ("n1", "n2"):
            to = {"address": {"channel": "email", "value": "address@sandbox.invalid"}}
            assert await send(both, name, to) == {"failed": 1}
