"""Several providers of e-mail, each a real SMTP server: chosen by domain, tenant, priority and weight, and left while they fail."""

from __future__ import annotations

import asyncio
import email
import email.policy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.dispatch.conftest import Running, WallClock, running
from tests.dispatch.email.test_email import Server, wait_for_state
from tests.dispatch.test_inbox import wait_for

DEADLINE_S = 60
FAST = {"dispatch_limits": {"sweep_ms": 100}}
HI: dict[str, Any] = {"to": {"receiver": "ann"}, "content": {"title": "hi"}}


class Relay(Server):
    """Keeps envelope senders, too; `stop` refuses new connections."""

    def __init__(self, **answers: str) -> None:
        super().__init__(**answers)
        self.port = 0
        self.logins: list[str] = []
        self.is_leaving = False

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.is_leaving:
            return "421 4.3.2 leaving"
        envelope.mail_from = address
        return "250 OK"

    def login(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        self.logins.append(data.login.decode())
        is_right = data.password == b"secret"
        return AuthResult(success=is_right, handled=is_right)

    @property
    def subjects(self) -> list[str]:
        return [str(email.message_from_bytes(raw, policy=email.policy.default)["Subject"]) for raw in self.taken]


@asynccontextmanager
async def listening(relay: Relay, **options: Any) -> AsyncIterator[Relay]:
    loop = asyncio.get_running_loop()
    make: Callable[[], SMTP] = lambda: SMTP(relay, hostname="mx.test", loop=loop, **options)  # noqa: E731  # a factory
    server = await loop.create_server(make, "127.0.0.1", relay.port)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        await server.wait_closed()


def make_body(relay: Relay, **fields: Any) -> dict[str, Any]:
    return {"relay": f"127.0.0.1:{relay.port}", "security": "none", "sender": "news@shop.example", **fields}


async def put_ann(both: Running, count: int = 0) -> None:
    for name in ["ann", *(f"r{number}" for number in range(count))]:
        await both.api("PUT", f"/v1/receivers/{name}", {})
        address = {"channel": "email", "value": f"{name}@mail.example"}
        assert (await both.api("PUT", f"/v1/receivers/{name}/addresses/mail", address))[0] == 200


async def test_a_from_address_needs_a_provider_that_an_operator_gave_the_tenant(tmp_path: Path, runtime: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        listening(Relay()) as shop,
        listening(Relay()) as club,
        running(tmp_path, FAST) as both,
    ):
        await both.api("PUT", "/v1/tenants/other", {})
        _, answer = await both.api(
            "POST", "/v1/keys", {"tenant": "other", "scopes": ["send", "manage", "read", "admin"]}
        )
        other = answer["key"]
        await both.api("PUT", "/v1/providers/shop", make_body(shop))
        own = make_body(club, sender="info@club.example", domains=["mail.club.example"], tenants=["other"])
        assert (await both.api("PUT", "/v1/providers/club", own))[0] == 201
        for wrong in ("PUT", "GET", "DELETE"):
            assert (await both.api(wrong, "/v1/providers/club", own, key=other))[1]["code"] == 4304
        await put_ann(both)
        forged = {**HI, "override": {"email": {"from": "boss@mail.club.example"}}}
        status, answer = await both.api("PUT", "/v1/notifications/n0", forged)
        assert (status, answer["code"], answer["pointer"]) == (422, 4340, "/override/email/from")
        wrong = {**HI, "override": {"email": {"from": "no address"}}}
        assert (await both.api("PUT", "/v1/notifications/n0", wrong))[1]["code"] == 4300
        await both.api("PUT", "/v1/receivers/ann", {}, key=other)
        await both.api(
            "PUT", "/v1/receivers/ann/addresses/mail", {"channel": "email", "value": "a@mail.example"}, key=other
        )
        for number, note in enumerate((HI, forged)):
            assert (await both.api("PUT", f"/v1/notifications/m{number}", note, key=other))[0] == 202
            while (await both.api("GET", f"/v1/notifications/m{number}", key=other))[1]["state"] != "settled":
                pass
        senders = [email.message_from_bytes(raw, policy=email.policy.default)["From"] for raw in club.taken]
        assert sorted(map(str, senders)) == ["boss@mail.club.example", "info@club.example"] and not shop.taken


async def test_a_provider_that_is_down_is_left_at_once_and_used_again_later(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.dispatch.pure.breaker.REST_MS", 300)
    count = 60
    async with asyncio.timeout(DEADLINE_S), listening(Relay()) as backup, running(tmp_path, FAST) as both:
        main = Relay()
        async with listening(main):
            await both.api("PUT", "/v1/providers/main", make_body(main, priority=1))
            await both.api("PUT", "/v1/providers/backup", make_body(backup, priority=2))
            await put_ann(both, count)
            await both.api("PUT", "/v1/notifications/n1", HI)
            await wait_for(both, "n1")
            assert (len(main.taken), len(backup.taken)) == (1, 0), "the first in order"
            main.is_leaving = True
            names = [f"r{number}" for number in range(count)]
            await both.api("PUT", "/v1/notifications/n2", {**HI, "to": {"receivers": names}})
            answer = await wait_for(both, "n2")
            assert answer["counts"]["email"] == {"sent": count} and len(backup.taken) == count
            _, shown = await both.api("GET", "/v1/providers/main")
            assert (shown["state"], shown["reason"][:3]) == ("resting", "421")
            _, rows = await both.api("GET", "/v1/notifications/n2/deliveries")
            mails = [row for row in rows["deliveries"] if row["channel"] == "email"]
            assert {(row["attempt"], row["possible_duplicate"]) for row in mails} == {(1, False)}
            main.is_leaving = False
            number = 0
            while (await both.api("GET", "/v1/providers/main"))[1]["state"] == "resting":
                number += 1
                await both.api("PUT", f"/v1/notifications/p{number}", HI)
                await wait_for(both, f"p{number}")
            assert len(main.taken) > 1
            assert len(main.taken) + len(backup.taken) == 1 + count + number, "each once"


async def test_where_every_provider_rests_mail_waits_and_no_attempt_is_counted(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.dispatch.pure.breaker.REST_MS", 500)
    monkeypatch.setattr("godwit.dispatch.pure.breaker.FAILURES_MAX", 1)
    async with asyncio.timeout(DEADLINE_S), listening(Relay()) as only, running(tmp_path, FAST) as both:
        await both.api("PUT", "/v1/providers/only", make_body(only))
        await put_ann(both, 5)
        only.is_leaving = True
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "deferred")
        await both.api("PUT", "/v1/notifications/n2", {**HI, "to": {"receiver": "r1"}})
        while not (rows := await list_mails(both, "n2")) or rows[0]["reason"] != "throttled":
            pass
        assert rows[0]["attempt"] == 0
        only.is_leaving = False
        await wait_for(both, "n2")
        assert only.subjects == ["hi"]


async def list_mails(both: Running, name: str) -> list[dict[str, Any]]:
    _, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries")
    return [row for row in answer["deliveries"] if row["channel"] == "email"]


async def test_weights_share_and_a_rate_is_kept(tmp_path: Path, runtime: Path) -> None:
    count = 60
    async with (
        asyncio.timeout(DEADLINE_S),
        listening(Relay()) as big,
        listening(Relay()) as small,
        running(tmp_path, FAST) as both,
    ):
        await both.api("PUT", "/v1/providers/big", make_body(big, weight=9))
        await both.api("PUT", "/v1/providers/small", make_body(small, weight=1))
        await put_ann(both, count)
        names = [f"r{number}" for number in range(count)]
        await both.api("PUT", "/v1/notifications/n1", {**HI, "to": {"receivers": names}})
        await wait_for(both, "n1")
        assert len(big.taken) + len(small.taken) == count and len(big.taken) > len(small.taken)
        await both.api("DELETE", "/v1/providers/big")
        assert (await both.api("PUT", "/v1/providers/small", make_body(small, rate_per_s=20)))[0] == 200
        before, begun = len(small.taken), asyncio.get_running_loop().time()
        await both.api("PUT", "/v1/notifications/n2", {**HI, "to": {"receivers": names[:30]}})
        await wait_for(both, "n2")
        took_s = asyncio.get_running_loop().time() - begun
        assert len(small.taken) - before == 30 and took_s >= 29 / 20, "a bound from below, which no busy machine breaks"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"relay": "nowhere"}, "/relay"),
        ({"relay": ""}, "/relay"),
        ({"sender": "nobody"}, "/sender"),
        ({"domains": ["shop.example", "-x"]}, "/domains/1"),
        ({"password": "x"}, "/password"),
        ({"dkim": {"selector": "s", "key": "-----BEGIN"}}, "/dkim/key"),
        ({"weight": 0}, "/weight"),
        ({"color": "red"}, ""),
    ],
)
async def test_a_provider_that_cannot_be_used_is_refused_with_its_field(
    tmp_path: Path, runtime: Path, change: dict[str, Any], pointer: str
) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        body = {"relay": "smtp.example:587", "sender": "news@shop.example", **change}
        status, answer = await both.api("PUT", "/v1/providers/west", body)
        assert (status, answer["code"], answer.get("pointer", "")) == (422, 4300, pointer) or (
            status == 400 and answer["code"] == 4300
        ), answer
        assert (await both.api("GET", "/v1/providers"))[1] == {"providers": []}


async def test_a_relay_that_refuses_a_from_address_keeps_working_for_others(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.dispatch.pure.breaker.FAILURES_MAX", 1)

    class Strict(Relay):
        async def handle_MAIL(
            self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
        ) -> str:
            if address.startswith("boss@"):
                return "550 5.7.1 boss@shop.example is not verified"
            return await super().handle_MAIL(server, session, envelope, address, options)

    async with asyncio.timeout(DEADLINE_S), listening(Strict()) as relay, running(tmp_path, FAST) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay))
        await put_ann(both)
        await both.api("PUT", "/v1/notifications/n1", {**HI, "override": {"email": {"from": "boss@shop.example"}}})
        await wait_for_state(both, "deferred")
        await both.api("PUT", "/v1/notifications/n2", HI)
        await wait_for(both, "n2")
        assert (await both.api("GET", "/v1/providers/only"))[1]["state"] == "working" and len(relay.taken) == 1


async def test_a_resting_provider_does_not_hold_up_the_same_domain_over_another(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.dispatch.pure.breaker.FAILURES_MAX", 1)
    async with (
        asyncio.timeout(DEADLINE_S),
        listening(Relay()) as shop,
        listening(Relay()) as club,
        running(tmp_path, FAST) as both,
    ):
        await both.api("PUT", "/v1/providers/shop", make_body(shop))
        await both.api("PUT", "/v1/providers/club", make_body(club, sender="info@club.example"))
        await put_ann(both, 3)
        shop.is_leaving = True
        over_shop = {**HI, "override": {"email": {"from": "news@shop.example"}}}
        await both.api("PUT", "/v1/notifications/n1", over_shop)
        await wait_for_state(both, "deferred")
        await both.api("PUT", "/v1/notifications/n2", {**over_shop, "to": {"receiver": "r1"}})
        while not (rows := await list_mails(both, "n2")) or rows[0]["reason"] != "throttled":
            pass
        over_club = {"to": {"receiver": "r2"}, "override": {"email": {"from": "info@club.example"}}}
        await both.api("PUT", "/v1/notifications/n3", {**HI, **over_club})
        await wait_for(both, "n3")
        assert len(club.taken) == 1
        shown = str(await both.api("GET", "/v1/providers"))
        assert "resting" in shown


async def test_mail_that_waits_expires_although_its_provider_is_gone(
    tmp_path: Path, runtime: Path, wall_clock: WallClock
) -> None:
    async with asyncio.timeout(DEADLINE_S), listening(Relay()) as relay:
        relay.is_leaving = True
        async with running(tmp_path, FAST) as both:
            await both.api("PUT", "/v1/providers/only", make_body(relay))
            await put_ann(both)
            await both.api("PUT", "/v1/notifications/n1", {**HI, "expires_s": 3_600})
            await wait_for_state(both, "deferred")
            await both.api("DELETE", "/v1/providers/only")
        wall_clock.move(3_700)
        async with running(tmp_path, FAST) as both:
            await wait_for_state(both, "expired")
            assert (await wait_for(both, "n1"))["counts"]["inbox"] == {"sent": 1}


async def test_a_password_stays_only_with_the_same_login(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        body = {"relay": "smtp.example:587", "sender": "news@shop.example", "user": "u"}
        await both.api("PUT", "/v1/providers/west", {**body, "password": "secret"})
        for change, has_password in (({}, True), ({"weight": 3}, True), ({"relay": "evil.example:25"}, False)):
            assert (await both.api("PUT", "/v1/providers/west", {**body, **change}))[1]["has_password"] is has_password


async def test_a_dkim_key_stays_until_it_is_replaced_or_removed(tmp_path: Path, runtime: Path) -> None:
    private = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    given = {"dkim": {"selector": "june", "key": private}}
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        body = {"relay": "smtp.example:587", "sender": "news@shop.example"}
        for change, has_key, selector in ((given, True, "june"), ({}, True, "june"), ({"dkim": None}, False, None)):
            status, answer = await both.api("PUT", "/v1/providers/west", {**body, **change})
            assert (status in (200, 201), answer["has_dkim_key"], answer.get("dkim_selector")) == (
                True,
                has_key,
                selector,
            )
