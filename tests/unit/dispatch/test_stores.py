"""Groups of units in one commit."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from godwit.dispatch.model import Options, State, Step
from godwit.dispatch.stores.sqlite import accept, ending, fanout, jobs, receivers
from godwit.dispatch.stores.sqlite import steps as steps_sql
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.deciding import digest_value
from godwit.dispatch.stores.sqlite.schema import TABLES
from godwit.dispatch.stores.sqlite.writer import Writer

CHANNELS = ("webhook", "email")


async def test_a_units_error_undoes_nothing_of_its_neighbours(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "x.sqlite")
    try:
        insert = "INSERT INTO category VALUES ('t', ?, 0, 0)"

        def fail(connection: object) -> None:
            connection.execute(insert, ("lost",))  # type: ignore[attr-defined]  # a connection
            raise ValueError("mine")

        told = await asyncio.gather(
            writer.run(lambda connection: connection.execute(insert, ("a",)).rowcount),
            writer.run(fail),
            writer.run(lambda connection: connection.execute(insert, ("b",)).rowcount),
            return_exceptions=True,
        )
        assert told[0] == told[2] == 1 and isinstance(told[1], ValueError)
        names = await writer.run(lambda connection: connection.execute("SELECT name FROM category").fetchall())
        assert names == [("a",), ("b",)]
    finally:
        writer.close()


def open_store() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    receivers.put_receiver(database, "t", "ann", b"{}", 1)
    receivers.put_address(database, "t", "ann", "w", "webhook", "https://a.example/")
    receivers.put_address(database, "t", "ann", "e", "email", "a@a.example")
    return database


def send(database: sqlite3.Connection, options: Options, now_ms: int) -> None:
    """Accepts a notification and makes the deliveries of its webhook job."""
    draft = Draft("t", "n", b"f", b"{}", ("ann",), (), True, 10**13, options=options)
    assert not accept.accept(database, draft, now_ms).unknown
    accept.route(database, CHANNELS, now_ms, 9)
    job = jobs.claim_job(database, "webhook", "t", now_ms, 1_000, 2)
    assert job is not None
    jobs.commit_page(database, job, jobs.read_page(database, job, 9, now_ms), now_ms + 1_000, now_ms)


def list_states(database: sqlite3.Connection) -> list[tuple[str, int]]:
    return database.execute("SELECT channel, state FROM delivery ORDER BY channel").fetchall()


def test_a_step_that_waits_for_its_time_is_not_given_up_and_the_last_never() -> None:
    database, now_ms = open_store(), 1_767_225_600_000
    steps = (Step("webhook", wait_s=60), Step("email", wait_s=60))
    send(database, Options(steps=steps, local="2026-01-01T08:00:00"), now_ms)
    steps_sql.advance_routes(database, CHANNELS, now_ms + 61_000, 9)
    assert list_states(database) == [("webhook", State.DEFERRED)], "its time has not come"
    due_ms = now_ms + 8 * 3_600_000
    steps_sql.advance_routes(database, CHANNELS, due_ms + 61_000, 9)
    assert list_states(database) == [("email", State.DEFERRED), ("webhook", State.CANCELLED)]
    steps_sql.advance_routes(database, CHANNELS, due_ms + 200_000, 9)
    assert list_states(database) == [("email", State.DEFERRED), ("webhook", State.CANCELLED)], "the last step waits on"


def test_a_retry_to_an_address_that_was_suppressed_meanwhile_ends() -> None:
    database, now_ms = open_store(), 1_767_225_600_000
    send(database, Options(), now_ms)
    database.execute("UPDATE delivery SET state = 2, attempt = 1, due_ms = ?", (now_ms,))
    digest = digest_value("webhook", "https://a.example/")
    columns = [row[1] for row in database.execute("PRAGMA table_info(suppression)")]
    known = {"tenant": "t", "channel": "webhook", "value": digest, "category": "*", "reason": "bounced"}
    marks = ", ".join("?" * len(columns))
    database.execute(f"INSERT INTO suppression VALUES ({marks})", [known.get(name, 0) for name in columns])
    assert fanout.claim_due(database, "webhook", now_ms, now_ms + 1_000, 9, ()) == []
    assert list_states(database) == [("webhook", State.SUPPRESSED)]


def test_a_replay_revives_nothing_that_was_cancelled() -> None:
    database, now_ms = open_store(), 1_767_225_600_000
    send(database, Options(), now_ms)
    database.execute("UPDATE delivery SET state = 6")
    ending.cancel(database, "t", "n", now_ms)
    assert ending.replay(database, "t", None, None, 9, now_ms, now_ms + 1_000) == 0
    assert list_states(database) == [("webhook", State.FAILED)]
