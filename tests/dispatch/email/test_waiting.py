"""E-mail that waits for a provider: what ends meanwhile is not sent, and a slow one holds up nobody else."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.dispatch.conftest import Running, WallClock, running
from tests.dispatch.email.test_email import wait_for_state
from tests.dispatch.email.test_providers import DEADLINE_S, FAST, HI, Relay, list_mails, listening, make_body, put_ann
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_tenants import make_key

LONG_S = 3_600


class Slow(Relay):
    """Accepts each e-mail only after the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()
        self.waiting = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.waiting += 1
        await self.released.wait()
        return await super().handle_DATA(server, session, envelope)


class Silent(Relay):
    """Does not answer on the connections that were open when it fell silent."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: set[Session] = set()
        self.silent: set[Session] = set()
        self.asked = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.sessions.add(session)
        return await super().handle_DATA(server, session, envelope)

    async def handle_RSET(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if session in self.silent:
            self.asked += 1
            await asyncio.Event().wait()
        return "250 OK"


async def put_receiver(both: Running, name: str, key: str) -> None:
    await both.api("PUT", f"/v1/receivers/{name}", {}, key=key)
    address = {"channel": "email", "value": f"{name}@mail.example"}
    assert (await both.api("PUT", f"/v1/receivers/{name}/addresses/mail", address, key=key))[0] == 200


async def test_a_slow_provider_leaves_the_slots_of_another(tmp_path: Path, runtime: Path) -> None:
    slow, quick = Slow(), Relay()
    async with (
        asyncio.timeout(DEADLINE_S),
        listening(slow),
        listening(quick),
        running(tmp_path, FAST) as both,
    ):
        await both.api("PUT", "/v1/providers/slow", make_body(slow, sends_max=4))
        await both.api("PUT", "/v1/providers/quick", make_body(quick, sender="info@club.example", sends_max=4))
        names = [f"r{number}" for number in range(20)]
        over_slow = {**HI, "to": {"receivers": names}, "override": {"email": {"from": "news@shop.example"}}}
        over_quick = {**HI, "override": {"email": {"from": "info@club.example"}}}
        for tenant in ("a", "b", "c"):
            key = await make_key(both, tenant, "admin")
            for name in names if tenant != "c" else ["ann"]:
                await put_receiver(both, name, key)
            if tenant != "c":
                await both.api("PUT", "/v1/notifications/n1", over_slow, key=key)
        while slow.waiting < 4:
            await both.api("GET", "/v1/notifications/n1", key=key)
        await both.api("PUT", "/v1/notifications/n1", over_quick, key=key)
        while not quick.taken:
            await both.api("GET", "/v1/notifications/n1", key=key)
        assert not slow.taken and slow.waiting == 4, "what it takes at once, and no more"
        slow.released.set()


async def test_a_backlog_for_a_slow_provider_does_not_delay_its_own_tenant(tmp_path: Path, runtime: Path) -> None:
    """A page and more waits for the slow one; the next notification of the tenant goes over another provider."""
    slow, quick = Slow(), Relay()
    limits = {**FAST["dispatch_limits"], "page_receivers_max": 10}
    async with (
        asyncio.timeout(DEADLINE_S),
        listening(slow),
        listening(quick),
        running(tmp_path, {**FAST, "dispatch_limits": limits}) as both,
    ):
        await both.api("PUT", "/v1/providers/slow", make_body(slow, sends_max=2))
        await both.api("PUT", "/v1/providers/quick", make_body(quick, sender="info@club.example", sends_max=2))
        await put_ann(both, 40)
        names = [f"r{number}" for number in range(40)]
        over_slow = {**HI, "to": {"receivers": names}, "override": {"email": {"from": "news@shop.example"}}}
        await both.api("PUT", "/v1/notifications/n1", over_slow)
        while len(await list_mails(both, "n1")) < 12 or slow.waiting < 2:
            pass
        over_quick = {**HI, "to": {"receivers": names[:3]}, "override": {"email": {"from": "info@club.example"}}}
        for number in range(3):
            await both.api("PUT", f"/v1/notifications/q{number}", over_quick)
        while len(quick.taken) < 9:
            await both.api("GET", "/v1/notifications/q0")
        assert not slow.taken and slow.waiting == 2
        assert len(await list_mails(both, "n1")) < 40, "the others of the slow one wait as one row, the job"
        slow.released.set()
        while (await both.api("GET", "/v1/notifications/n1"))[1]["counts"].get("email") != {"sent": 40}:
            pass


async def test_slow_providers_that_share_tenants_leave_the_slots_of_another(tmp_path: Path, runtime: Path) -> None:
    """Tenant `both` may use either slow provider: what it sends is counted at one of them, and not as a third group."""
    slow, quick = Slow(), Relay()
    names = [f"r{number}" for number in range(10)]
    async with (
        asyncio.timeout(DEADLINE_S),
        listening(slow),
        listening(quick),
        running(tmp_path, FAST) as both,
    ):
        keys = {tenant: await make_key(both, tenant, "admin") for tenant in ("one", "two", "both", "other")}
        for name, tenants in (("slow1", ["one", "both"]), ("slow2", ["two", "both"])):
            await both.api("PUT", f"/v1/providers/{name}", make_body(slow, sends_max=4, tenants=tenants))
        await both.api("PUT", "/v1/providers/quick", make_body(quick, sends_max=4, tenants=["other"]))
        for tenant, key in keys.items():
            for name in names if tenant != "other" else ["ann"]:
                await put_receiver(both, name, key)
        for number in range(2):
            for tenant in ("one", "two", "both"):
                body = {**HI, "to": {"receivers": names}}
                assert (await both.api("PUT", f"/v1/notifications/n{number}", body, key=keys[tenant]))[0] == 202
        while slow.waiting < 8:
            await both.api("GET", "/v1/notifications/n1", key=keys["one"])
        await both.api("PUT", "/v1/notifications/n1", HI, key=keys["other"])
        while not quick.taken:
            await both.api("GET", "/v1/notifications/n1", key=keys["other"])
        assert not slow.taken and slow.waiting == 8, "what they take at once, and no more"
        slow.released.set()


async def test_what_ends_while_it_waits_for_its_turn_is_not_sent(
    tmp_path: Path, runtime: Path, wall_clock: WallClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.dispatch.channels.email.providers.TURN_MS_MAX", 60_000)
    async with asyncio.timeout(DEADLINE_S), listening(Relay()) as relay, running(tmp_path, FAST) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay, rate_per_s=2))
        await put_ann(both, 10)
        first = {"receivers": [f"r{number}" for number in range(6)]}
        await both.api("PUT", "/v1/notifications/n0", {**HI, "to": first})
        while [row["state"] for row in await list_mails(both, "n0")].count("sending") < 5:
            pass
        for name, extra in (("ann", {}), ("r7", {}), ("r8", {}), ("r9", {"expires_s": LONG_S})):
            await both.api("PUT", f"/v1/notifications/{name}", {**HI, **extra, "to": {"receiver": name}})
            while (await list_mails(both, name))[0:1] == [] or (await list_mails(both, name))[0]["state"] != "sending":
                pass
        assert (await both.api("POST", "/v1/notifications/ann/cancel"))[0] == 200
        assert (await both.api("DELETE", "/v1/receivers/r7/addresses/mail"))[0] == 204
        assert (await both.api("PUT", "/v1/suppressions/email/r8@mail.example", {}))[0] == 200
        wall_clock.move(LONG_S + 1)
        ends = {"ann": "cancelled", "r7": "failed", "r8": "suppressed", "r9": "expired"}
        for name, state in ends.items():
            while (row := (await list_mails(both, name))[0])["state"] == "sending":
                pass
            assert row["state"] == state
        assert len(relay.taken) == 6


@pytest.mark.parametrize("read", ["find_end", "read_letter"])
async def test_what_could_not_be_read_before_it_was_sent_is_not_in_doubt(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    def fail(*given: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    where = {"find_end": "godwit.dispatch.channels.email.opening", "read_letter": "godwit.dispatch.roles"}
    async with asyncio.timeout(DEADLINE_S), listening(Relay()) as relay, running(tmp_path, FAST) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay, rate_per_s=2))
        await put_ann(both, 1)
        monkeypatch.setattr(f"{where[read]}.{read}", fail)
        await both.api("PUT", "/v1/notifications/n1", {**HI, "to": {"receivers": ["ann", "r0"]}})  # one has to wait
        rows: list[dict[str, Any]] = []
        while not (waiting := [row for row in rows if row["state"] == "deferred"]):
            rows = await list_mails(both, "n1")
        row = waiting[0]
        assert (row["attempt"], row["reason"], row["possible_duplicate"]) == (0, "temporary", False)
        assert "disk I/O error" in row["ref"]


async def test_a_refused_login_keeps_the_mail_until_it_is_corrected(tmp_path: Path, runtime: Path) -> None:
    relay = Relay()
    login = {"auth_require_tls": False, "authenticator": relay.login}
    async with asyncio.timeout(DEADLINE_S), listening(relay, **login), running(tmp_path, FAST) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay, user="me", password="old"))
        await put_ann(both, 1)
        await both.api("PUT", "/v1/notifications/n1", {**HI, "expires_s": 60})
        row = await wait_for_state(both, "failed")  # its next attempt would come after it expires
        assert (row["reason"], row["ref"][:3]) == ("account", "535")
        await both.api("PUT", "/v1/notifications/n2", {**HI, "to": {"receiver": "r0"}})
        while not (rows := await list_mails(both, "n2")) or rows[0]["state"] != "deferred":
            pass
        assert (rows[0]["reason"], rows[0]["attempt"]) == ("account", 0)
        await both.api("PUT", "/v1/providers/only", make_body(relay, user="me", password="secret"))
        _, answer = await both.api("POST", "/v1/dead-letters/replay", {"reason": "account"})
        assert answer["replayed"] == 1
        await wait_for_state(both, "sent")


async def test_silent_connections_cost_one_short_wait(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.dispatch.channels.email.provider.CHECK_S", 0.1)
    relay = Silent()
    async with asyncio.timeout(DEADLINE_S), listening(relay), running(tmp_path, FAST) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay, timeout_ms=300_000))
        await put_ann(both, 8)
        await both.api(
            "PUT", "/v1/notifications/n0", {**HI, "to": {"receivers": [f"r{number}" for number in range(8)]}}
        )
        await wait_for(both, "n0")
        relay.silent = set(relay.sessions)
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "sent")
        assert row["attempt"] == 1 and relay.asked == 1
        assert (await both.api("GET", "/v1/providers/only"))[1]["state"] == "working"
