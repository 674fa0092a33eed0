"""Notifications that are accepted many at once: results and rows are those of one after the other, for fewer statements."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from godwit.dispatch.errors import RequestRefused, StoreFailed
from godwit.dispatch.model import Options, Quotas
from godwit.dispatch.stores.sqlite import receivers, tenants
from godwit.dispatch.stores.sqlite.accept import Draft, accept, route
from godwit.dispatch.stores.sqlite.many.accepts import accept_many
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.stores.sqlite.writer import GROUP_MAX
from godwit.dispatch.vault import Vault

VAULT = Vault([bytes(32)])
NOW_MS = 1_767_225_600_000
ROWS = (
    "SELECT tenant, id, fingerprint, body, hex(targets), state, accepted_ms, due_ms, expires_ms, options FROM notification ORDER BY 1, 2",
    "SELECT name, receivers, stored_bytes FROM tenant ORDER BY name",
    "SELECT tenant, name FROM receiver ORDER BY 1, 2",
    "SELECT notification.tenant, id, job.* FROM job JOIN notification USING (nid) ORDER BY 1, 2, job.channel",
)


def make_draft(chance: random.Random) -> Draft:
    tenant, receiver = chance.choice("tu"), chance.choice(["a", "b", "unknown", "fresh"])
    new = ((receiver, b"{}"),) if receiver == "fresh" and chance.random() < 0.5 else ()
    options = Options(category="news", collapse_key=chance.choice(["", "k"])) if chance.random() < 0.3 else Options()
    due_ms = chance.choice([0, 0, 0, 1, NOW_MS + 5])
    name, print_ = f"n{chance.randrange(12)}", chance.choice([b"f", b"f", b"g"])
    default = 1_000 if options.category else None
    drafted = Draft(
        tenant, name, print_, b"x" * chance.randrange(60), (receiver,), new, True, 10**13, None, due_ms, options=options
    )
    channels = chance.choice([(), ("inbox",), ("inbox", "webhook")])
    return drafted._replace(default_expires_from_ms=default, channels=channels)


def open_store(path: Path) -> sqlite3.Connection:
    connection = open_writer(path, VAULT)
    tenants.put_tenant(connection, "t", Quotas(stored_bytes=900))
    tenants.put_tenant(connection, "u", Quotas(receivers=2))
    for tenant in "tu":
        for name in "ab":
            receivers.put_receiver(connection, tenant, name, b"{}", 1)
    receivers.put_address(connection, "t", "a", "hook", "webhook", "https://hook.example")
    connection.execute("INSERT INTO category VALUES ('t', 'news', 0, 60)")
    return connection


def accept_one(connection: sqlite3.Connection, draft: Draft) -> object:
    connection.execute("SAVEPOINT one")
    try:
        return accept(connection, draft, NOW_MS)
    except RequestRefused as refused:
        connection.execute("ROLLBACK TO one")
        return refused.code
    finally:
        connection.execute("RELEASE one")


@pytest.mark.parametrize("seed", range(30))
def test_each_result_is_that_of_accepting_one_after_the_other(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    drafts = [make_draft(chance) for _ in range(40)]
    with closing(open_store(tmp_path / "many")) as many, closing(open_store(tmp_path / "one")) as one:
        together: list[object] = []
        for begin in range(0, 40, 20):
            results = accept_many(many, [(draft, NOW_MS) for draft in drafts[begin : begin + 20]])
            together += [result.code if isinstance(result, RequestRefused) else result for result in results]
        assert together == [accept_one(one, draft) for draft in drafts]
        for query in ROWS:
            assert _without_numbers(many, query) == _without_numbers(one, query)
        numbers = many.execute("SELECT accepted FROM notification ORDER BY nid").fetchall()
        assert len(set(numbers)) == len(numbers)


def _without_numbers(connection: sqlite3.Connection, query: str) -> list[tuple[object, ...]]:
    """The rows, but for the numbers of notifications: those of several tenants are accepted in another order."""
    cursor = connection.execute(query)
    kept = [place for place, column in enumerate(cursor.description) if column[0] != "nid"]
    return [tuple(row[place] for place in kept) for row in cursor]


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_due_has_its_jobs_with_the_accept(tmp_path: Path, count: int) -> None:
    with closing(open_store(tmp_path / "x")) as connection:
        channels = ("inbox", "webhook")
        drafts = [Draft("t", f"n{n}", b"f", b"{}", ("ab"[n % 2],), (), True, 10**13) for n in range(count)]
        drafts = [draft._replace(channels=channels) for draft in drafts]
        later = [draft._replace(id=f"later-{draft.id}", due_ms=NOW_MS + 1) for draft in drafts]
        personal = drafts[0]._replace(id="personal", options=Options(is_personal=True))
        unknown = drafts[0]._replace(id="unknown", receivers=("nobody",))
        results = accept_many(connection, [(draft, NOW_MS) for draft in (*drafts, *later, personal, unknown)])
        reached = [("inbox", "webhook") if number % 2 == 0 else ("inbox",) for number in range(count)]
        assert [result.channels for result in results] == [*reached, *[()] * (count + 2)], "b has no webhook"
        query = "SELECT id, state, channel FROM notification LEFT JOIN job USING (nid) ORDER BY nid, channel"
        jobs = [(f"n{number}", "routed", channel) for number in range(count) for channel in reached[number]]
        rest = [*((draft.id, "accepted", None) for draft in later), ("personal", "accepted", None)]
        assert connection.execute(query).fetchall() == jobs + rest
        assert route(connection, ("inbox",), NOW_MS, 9) == ["t"], "the router has only the personal one left"


def test_plain_ones_take_as_many_statements_and_rows_as_two(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "x")) as connection:
        tenants.put_tenant(connection, "v")
        for number in range(60):
            receivers.put_receiver(connection, "v", f"r{number}", b"{}", 1)
        counts = []
        for size in (2, 60):
            statements: list[object] = []
            connection.set_trace_callback(statements.append)
            connection.row_factory = lambda _, row, steps=statements: steps.append(row) or row
            drafts = [
                Draft("v", f"{size}-{number}", b"f", b"{}", (f"r{number}",), (), True, 10**13) for number in range(size)
            ]
            drafts = [draft._replace(channels=("inbox", "webhook")) for draft in drafts]
            accept_many(connection, [(draft, NOW_MS) for draft in drafts])
            counts.append(len(statements))
        assert counts[0] == counts[1]


def test_one_that_fails_stops_no_other(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "x")) as connection:
        drafts = [Draft("u", name, b"f", b"{}", ("a",), (), True, 10**13) for name in ("1", "\ud800", "3")]
        first, failed, third = accept_many(connection, [(draft, NOW_MS) for draft in drafts])
        assert isinstance(failed, UnicodeEncodeError) and (first, third) == (("1", *first[1:]), ("3", *third[1:]))
        assert connection.execute("SELECT id FROM notification ORDER BY id").fetchall() == [("1",), ("3",)]


async def test_accepts_that_come_together_are_few_commits_and_each_is_answered(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    try:
        await store.writer.run(lambda connection: tenants.put_tenant(connection, "t", Quotas(receivers=1)))
        await store.writer.run(partial(receivers.put_receiver, tenant="t", name="a", attributes=b"{}", now_ms=1))
        count = 2 * GROUP_MAX + 5
        drafts = [Draft("t", f"n{number}", b"f", b"{}", ("a",), (), True, 10**13) for number in range(count)]
        drafts[7] = drafts[7]._replace(receivers=("b",), new_receivers=(("b", b"{}"),))
        drafts[9] = drafts[8]
        before = store.writer.commits
        results = await asyncio.gather(*(store.accept(draft, NOW_MS) for draft in drafts), return_exceptions=True)
        assert store.writer.commits - before <= 4
        assert isinstance(results[7], RequestRefused), "the tenant may have one receiver"
        assert [
            number for number, one in enumerate(results) if not isinstance(one, Exception) and one.is_duplicate
        ] == [9]
        found = await store.reader.run(
            lambda connection: connection.execute("SELECT count(*) FROM notification").fetchone()
        )
        assert found == (count - 2,)
    finally:
        store.close()
    with pytest.raises(StoreFailed):
        await store.accept(drafts[0], NOW_MS)
