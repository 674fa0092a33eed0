"""Answers of other sides with bytes that are not UTF-8, and results that the store cannot take: only that delivery is concerned."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from godwit.dispatch.errors import StoreFailed
from godwit.dispatch.fanout.dispatcher import Clocks, Dispatcher, Pace
from godwit.dispatch.model import Outcome, PutOff, Shipment, State
from tests.dispatch.email.test_email import Server, mailing
from tests.dispatch.email.test_email import wait_for_state as wait_for_mail
from tests.dispatch.hostile.test_other_sides import serving
from tests.dispatch.hostile.test_outage import RECEIVERS, OpenWorld, fill_with_one
from tests.dispatch.simulation import CHANNEL, Store, check_counts
from tests.dispatch.test_webhook import HI

DEADLINE_S = 60
LATIN1 = "utilisateur inconnu à cette adresse".encode("latin-1")


@asynccontextmanager
async def answering(step: bytes, code: bytes) -> AsyncIterator[str]:
    """A mail server that answers one step, of the first e-mail only, with a code and a text in Latin-1."""
    is_first = True

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal is_first
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(b"220 mx.test\r\n")
            while line := await reader.readline():
                answer = b"250 OK\r\n"
                if line.upper().startswith(b"DATA"):
                    writer.write(b"354 go\r\n")
                    await reader.readuntil(b"\r\n.\r\n")
                if is_first and line.upper().startswith(step):
                    is_first, answer = False, code + b" " + LATIN1 + b"\r\n"
                writer.write(answer)
                await writer.drain()
        writer.close()

    async with serving(talk) as relay:
        yield relay


@pytest.mark.parametrize(
    ("step", "code", "state"),
    [
        (b"RCPT", b"550 5.1.1", "failed"),
        (b"RCPT", b"450 4.2.0", "deferred"),
        (b"RCPT", b"450 4.7.28", "deferred"),
        (b"DATA", b"250", "sent"),
        (b"DATA", b"554", "failed"),
    ],
)
async def test_an_answer_in_another_encoding_is_stored_and_the_next_mail_leaves(
    tmp_path: Path, runtime: Path, step: bytes, code: bytes, state: str
) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        answering(step, code) as relay,
        mailing(tmp_path, Server(), relay=relay) as both,
    ):
        await both.api("PUT", "/v1/notifications/n1", HI)
        assert "inconnu ? cette" in (await wait_for_mail(both, state))["ref"]
        await both.api("PUT", "/v1/receivers/bob", {})
        await both.api("PUT", "/v1/receivers/bob/addresses/mail", {"channel": "email", "value": "bob@other.example"})
        await both.api("PUT", "/v1/notifications/n2", {**HI, "to": {"receiver": {"id": "bob"}}})
        while (await list_states(both, "n2")) != ["sent"]:
            pass


async def list_states(both: Any, name: str) -> list[str]:
    _, found = await both.api("GET", f"/v1/notifications/{name}/deliveries?channel=email")
    return [row["state"] for row in found["deliveries"]]


class Odd:
    """A sender; what it reports of every tenth delivery is no text."""

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        (shipment,) = batch
        ref = "\udce0" if shipment.key.rid % 10 == 0 else "fine"
        return [Outcome(shipment.key, shipment.attempt, State.SENT, ref=ref)]


class Refusing(Store):
    """A store whose disk is full while `is_full`."""

    is_full = False

    async def put_off(self, rows: Sequence[PutOff]) -> None:
        if self.is_full:
            raise StoreFailed("the disk is full")
        await super().put_off(rows)


def make(world: OpenWorld, store: Store, sender: Any) -> Dispatcher:
    clock = lambda: world.now_ms  # noqa: E731  # simulated
    pace = Pace(page_receivers=RECEIVERS, slots=16, per_lane=16, due_limit=RECEIVERS)
    return Dispatcher(CHANNEL, store, sender, Clocks(clock, clock), pace=pace)


async def finish(dispatcher: Dispatcher) -> None:
    while dispatcher.is_busy:
        await dispatcher.tick()
        if dispatcher.tasks:
            await asyncio.wait(dispatcher.tasks)


async def test_a_result_that_the_store_refuses_ends_its_own_delivery_alone() -> None:
    world = OpenWorld(random.Random(1))
    keys = fill_with_one(world)
    dispatcher = make(world, Store(world, 0), Odd())
    try:
        await dispatcher.work_page(None)
        await finish(dispatcher)
        check_counts(world)
        for key in keys:
            is_odd = key.rid % 10 == 0
            assert world.row(key)[0] is (State.UNKNOWN if is_odd else State.SENT)
    finally:
        dispatcher.abandon()
        world.database.close()


async def test_a_full_disk_while_deliveries_are_put_off_takes_no_slot() -> None:
    world = OpenWorld(random.Random(1))
    keys = fill_with_one(world)
    store = Refusing(world, 0)
    dispatcher = make(world, store, Odd())
    try:
        await dispatcher.work_page(None)
        dispatcher._put_off.append(PutOff(keys[0], 7, world.now_ms))
        store.is_full = True
        for _ in range(3):
            dispatcher._put_off.append(PutOff(keys[0], 7, world.now_ms))
            with pytest.raises(StoreFailed):
                await dispatcher.tick()
        store.is_full = False
        await finish(dispatcher)
        assert all(world.row(key)[0] in (State.SENT, State.UNKNOWN) for key in keys)
    finally:
        dispatcher.abandon()
        world.database.close()
