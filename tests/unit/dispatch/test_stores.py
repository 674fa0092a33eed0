"""Groups of units in one commit."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from godwit.dispatch.api.bodies import ImportedAddress, ImportedReceiver
from godwit.dispatch.api.receivers import put_imported
from godwit.dispatch.model import DeliveryKey, Options, Outcome, State, Step
from godwit.dispatch.stores.sqlite import accept, ending, fanout, jobs, receivers, retention
from godwit.dispatch.stores.sqlite import steps as steps_sql
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.deciding import digest_value
from godwit.dispatch.stores.sqlite.feed import hooks
from godwit.dispatch.stores.sqlite.schema import TABLES, add_functions
from godwit.dispatch.stores.sqlite.writer import Writer
from godwit.dispatch.vault import Vault

CHANNELS = ("webhook", "email")


async def test_a_units_error_undoes_nothing_of_its_neighbours(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "x.sqlite", Vault([bytes(32)]))
    try:
        insert = "INSERT INTO category VALUES ('t', ?, 0, 0)"

        def fail(connection: object) -> None:
            connection.execute(insert, ("lost",))  # type: ignore[attr-defined]  # a connection
            raise ValueError("mine")

        outcomes = await asyncio.gather(
            writer.run(lambda connection: connection.execute(insert, ("a",)).rowcount),
            writer.run(fail),
            writer.run(lambda connection: connection.execute(insert, ("b",)).rowcount),
            return_exceptions=True,
        )
        assert outcomes[0] == outcomes[2] == 1 and isinstance(outcomes[1], ValueError)
        names = await writer.run(lambda connection: connection.execute("SELECT name FROM category").fetchall())
        assert names == [("a",), ("b",)]
    finally:
        writer.close()


def open_store() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    add_functions(database, Vault([bytes(32)]))
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
    assert ending.cancel(database, "t", "n", also_settled=True) == ending.Cancelled(1)
    assert ending.replay(database, "t", ending.Replayed(State.FAILED), 9, now_ms, now_ms + 1_000) == 0
    assert list_states(database) == [("webhook", State.FAILED)]


def test_what_is_being_sent_when_its_policy_moves_on_is_not_sent_again() -> None:
    for is_left_behind in (False, True):
        database, now_ms = open_store(), 1_767_225_600_000
        send(database, Options(steps=(Step("webhook", wait_s=60), Step("email", wait_s=60))), now_ms)
        database.execute("UPDATE delivery SET state = 3, attempt = 1, due_ms = ?", (now_ms + 70_000,))
        steps_sql.advance_routes(database, CHANNELS, now_ms + 61_000, 9)
        assert list_states(database) == [("email", State.DEFERRED), ("webhook", State.SENDING)]
        if is_left_behind:
            assert fanout.claim_due(database, "webhook", now_ms + 80_000, now_ms + 90_000, 9, ()) == []
        else:
            key = DeliveryKey(
                *database.execute("SELECT nid, rid, channel, aid FROM delivery WHERE state = 3").fetchone()
            )
            outcome = Outcome(key, 1, State.DEFERRED, "timeout", retry_at_ms=now_ms + 70_000)
            fanout.advance(database, [outcome], [], [], now_ms + 62_000, now_ms + 90_000)
        assert list_states(database) == [("email", State.DEFERRED), ("webhook", State.CANCELLED)]


def test_a_policy_does_not_move_to_a_channel_that_the_receiver_lacks() -> None:
    database, now_ms = open_store(), 1_767_225_600_000
    database.execute("DELETE FROM address WHERE channel = 'email'")
    send(database, Options(steps=(Step("webhook", wait_s=60), Step("email", wait_s=60))), now_ms)
    database.execute("UPDATE delivery SET state = 2, attempt = 1")
    steps_sql.advance_routes(database, CHANNELS, now_ms + 61_000, 9)
    assert list_states(database) == [("webhook", State.DEFERRED)]


def test_letters_of_event_webhooks_are_bounded_and_forgotten() -> None:
    database = open_store()
    hook, _ = hooks.put_hook(database, "t", "w", "https://a.example/", [], "counts")
    for eid in range(hooks.LETTERS_MAX + 50):
        hooks.bury(database, hook, eid, f"evt_{eid}", "HTTP 400", eid)
    assert len(hooks.list_letters(database, hook.wid, 9_999)) == hooks.LETTERS_MAX
    retention.forget_old(database, 10**6, 9_999)
    assert hooks.list_letters(database, hook.wid, 9_999) == []


def test_an_import_leaves_the_format_of_an_address() -> None:
    database = open_store()
    value = "https://a.example/"
    receivers.put_address(database, "t", "ann", "w", "webhook", value, '{"preset":"slack"}')
    put_imported(database, "t", [ImportedReceiver(id="ann", addresses=[ImportedAddress("w", "webhook", value)])], 2)
    assert database.execute("SELECT unseal(format) FROM address WHERE name = 'w'").fetchone() == ('{"preset":"slack"}',)
    receivers.put_address(database, "t", "ann", "w", "webhook", value, "")
    assert database.execute("SELECT unseal(format) FROM address WHERE name = 'w'").fetchone() == ("",), (
        "a PUT replaces it"
    )


def test_routing_makes_no_job_that_finds_nobody() -> None:
    database = open_store()
    receivers.put_receiver(database, "t", "bob", b"{}", 1)
    receivers.put_receiver(database, "t", "cid", b"{}", 1)
    receivers.put_address(database, "t", "cid", "m", "email", "cid@mail.example")
    cases = {
        "inbox": (("bob",), Options(), ["inbox"]),
        "both": (("bob", "cid"), Options(), ["email", "inbox"]),
        "steps": (("bob",), Options(steps=(Step("webhook"), Step("inbox"))), ["webhook"]),
    }
    for name, (names, options, _) in cases.items():
        accept.accept(database, Draft("t", name, b"f", b"{}", names, (), False, 10**13, options=options), 1)
    accept.route(database, ["inbox", *CHANNELS], 1, 9)
    for name, (_, _, expected) in cases.items():
        rows = database.execute(
            "SELECT channel FROM job JOIN notification USING (nid) WHERE id = ? ORDER BY 1", (name,)
        )
        assert [channel for (channel,) in rows] == expected, name


def test_a_claim_for_any_tenant_takes_the_most_urgent_job_and_sorts_nothing() -> None:
    database = open_store()
    for nid, (tenant, priority) in enumerate([("b", 1), ("a", 1), ("c", 0), ("b", 2), ("a", 0)], 1):
        database.execute("INSERT INTO job VALUES (?, 'inbox', ?, 0, 0, 0, 0, ?, 0)", (nid, tenant, priority))
        database.execute(
            "INSERT INTO notification (nid, tenant, id, fingerprint, body, targets, gid, version, state, accepted, accepted_ms, due_ms, "
            "expires_ms, priority, options, collapse_key) VALUES (?, ?, ?, x'', x'7b7d', x'', 0, 0, 'routed', 1, 1, 0, 99, 0, x'', '')",
            (nid, tenant, f"x{nid}"),
        )
    asked: list[str] = []
    database.set_trace_callback(asked.append)
    taken = []
    while job := jobs.claim_job(database, "inbox", None, 10, 1_000):
        taken.append((job.nid, job.tenant))
    database.set_trace_callback(None)
    assert taken == [(3, "c"), (5, "a"), (1, "b"), (2, "a"), (4, "b")]
    for query in {text for text in asked if text.startswith("SELECT priority") or text.startswith("WITH")}:
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {query}")]
        assert not any("TEMP B-TREE" in step or "SCAN job" in step for step in plan), plan


def test_an_address_that_was_taken_by_a_delivery_that_never_left_is_free_for_another() -> None:
    steps = (Step("webhook", wait_s=60), Step("email", wait_s=60))
    for ends_by, options in (("preference", Options(dedupe=True)), ("next step", Options(dedupe=True, steps=steps))):
        database, now_ms = open_store(), 1_767_225_600_000
        receivers.put_receiver(database, "t", "bob", b"{}", 1)
        receivers.put_address(database, "t", "bob", "w", "webhook", "https://a.example/")
        draft = Draft("t", "n", b"f", b"{}", ("ann", "bob"), (), False, 10**13, options=options)
        accept.accept(database, draft, now_ms)
        accept.route(database, CHANNELS, now_ms, 9)
        work_page(database, now_ms)
        database.execute("UPDATE delivery SET state = 2, due_ms = ?", (now_ms,))
        if ends_by == "preference":
            receivers.put_preferences(database, "t", "ann", b'{"*": {"*": false}}')
            assert fanout.claim_due(database, "webhook", now_ms, now_ms + 1_000, 9, ()) == []
        else:
            steps_sql.advance_routes(database, CHANNELS, now_ms + 61_000, 9)
        work_page(database, now_ms)
        states = database.execute("SELECT state FROM delivery WHERE channel = 'webhook' ORDER BY rid").fetchall()
        ended = State.SUPPRESSED if ends_by == "preference" else State.CANCELLED
        assert states == [(ended,), (State.QUEUED,)], ends_by


def test_a_collapsed_delivery_stays_collapsed_when_the_one_that_took_its_address_value_fails() -> None:
    database, now_ms = open_store(), 1_767_225_600_000
    receivers.put_receiver(database, "t", "bob", b"{}", 1)
    receivers.put_address(database, "t", "bob", "w", "webhook", "https://a.example/")
    draft = Draft("t", "n", b"f", b"{}", ("ann", "bob"), (), False, 10**13, options=Options(dedupe=True))
    accept.accept(database, draft, now_ms)
    accept.route(database, CHANNELS, now_ms, 9)
    for _ in range(2):
        work_page(database, now_ms)
    query = "SELECT state, reason FROM delivery WHERE channel = 'webhook' ORDER BY rid"
    assert database.execute(query).fetchall() == [(State.QUEUED, ""), (State.COLLAPSED, "duplicate_address")]
    assert receivers.delete_address(database, "t", "ann", "w")
    later_ms = now_ms + 2_000
    assert fanout.claim_due(database, "webhook", later_ms, later_ms + 1_000, 9, ()) == []
    assert database.execute(query).fetchall() == [(State.FAILED, "address"), (State.COLLAPSED, "duplicate_address")]


def work_page(database: sqlite3.Connection, now_ms: int) -> None:
    """The next page of the webhook job, of one receiver."""
    job = jobs.claim_job(database, "webhook", "t", now_ms, 1_000, 2)
    assert job is not None
    jobs.commit_page(database, job, jobs.read_page(database, job, 1, now_ms), now_ms + 1_000, now_ms)
