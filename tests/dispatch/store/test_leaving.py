"""Who is erased, unsubscribes or moves while a delivery waits to be sent: nothing goes to the old address."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import pairwise

import pytest

from godwit.dispatch.model import Options, Shipment, State, Step
from godwit.dispatch.stores.sqlite import accept, fanout, jobs, receivers, steps, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.manage import leaving, wishes
from godwit.dispatch.stores.sqlite.schema import TABLES, add_functions
from godwit.dispatch.vault import Vault

NOW_MS, LEASE_MS = 1_767_225_600_000, 30_000
URL, OTHER = "https://a.example/", "https://b.example/"
Change = Callable[[sqlite3.Connection], object]


def nothing(database: sqlite3.Connection) -> None:
    """No change."""


def erase(database: sqlite3.Connection) -> None:
    assert receivers.delete_receiver(database, "t", "ann")


def delete(database: sqlite3.Connection) -> None:
    assert receivers.delete_address(database, "t", "ann", "w")


def suppress(database: sqlite3.Connection) -> None:
    wishes.put_suppression(database, "t", "webhook", URL, "*", "unsubscribed", NOW_MS)


def suppress_other(database: sqlite3.Connection) -> None:
    wishes.put_suppression(database, "t", "webhook", URL, "news", "unsubscribed", NOW_MS)


def move(database: sqlite3.Connection) -> None:
    receivers.put_address(database, "t", "ann", "w", "webhook", OTHER)


def hold(between: Change = nothing, options: Options | None = None) -> tuple[sqlite3.Connection, list[Shipment]]:
    """A notification whose page was stored after a change; the shipments that the worker has in memory."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    add_functions(database, Vault([bytes(32)]))
    receivers.put_receiver(database, "t", "ann", b"{}", 1)
    receivers.put_address(database, "t", "ann", "w", "webhook", URL)
    draft = Draft("t", "n", b"f", b"{}", ("ann",), (), False, 10**13, options=options or Options())
    accept.accept(database, draft, NOW_MS)
    accept.route(database, ("webhook",), NOW_MS, 9)
    job = jobs.claim_job(database, "webhook", "t", NOW_MS, 1_000, 2)
    assert job is not None
    page = jobs.read_page(database, job, 9, NOW_MS)
    between(database)
    inserted = jobs.commit_page(database, job, page, NOW_MS + LEASE_MS, NOW_MS)
    assert inserted is not None
    targets = {(target.rid, target.aid): target for target in page.targets}
    return database, [Shipment(key, "t", targets[key.rid, key.aid], 0, 10**13) for key in inserted]


def begin(database: sqlite3.Connection, waiting: list[Shipment], now_ms: int = NOW_MS) -> list[str]:
    """The addresses to which sends begin."""
    begun = fanout.advance(database, [], waiting, [], now_ms, now_ms + LEASE_MS)
    return [shipment.target.value for shipment in begun]


def claim(database: sqlite3.Connection, now_ms: int) -> list[Shipment]:
    return fanout.claim_due(database, "webhook", now_ms, now_ms + LEASE_MS, 9, ())


def list_rows(database: sqlite3.Connection) -> list[tuple[State, str]]:
    return [(State(state), reason) for state, reason in database.execute("SELECT state, reason FROM delivery")]


@pytest.mark.parametrize("leave", [erase, delete])
def test_what_was_deleted_after_its_page_was_read_gets_no_delivery(leave: Change) -> None:
    database, waiting = hold(leave)
    assert not waiting and not list_rows(database)


@pytest.mark.parametrize(
    ("leave", "ended"),
    [
        (erase, (State.FAILED, "address")),
        (delete, (State.FAILED, "address")),
        (suppress, (State.SUPPRESSED, "unsubscribed")),
    ],
)
def test_what_waits_in_memory_is_looked_at_again_before_its_send(leave: Change, ended: tuple[State, str]) -> None:
    database, waiting = hold()
    leave(database)
    assert not begin(database, waiting)
    assert list_rows(database) == [ended]


def test_an_address_that_moved_is_sent_to_at_its_new_place() -> None:
    database, waiting = hold()
    move(database)
    assert not begin(database, waiting)
    assert begin(database, claim(database, NOW_MS + 1)) == [OTHER]


@pytest.mark.parametrize("change", [nothing, suppress_other])
def test_what_did_not_leave_is_sent_to(change: Change) -> None:
    database, waiting = hold(options=Options(category="offers"))
    change(database)
    assert begin(database, waiting) == [URL]


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_suppression_counts_for_what_waits_again_after_its_lease(has_begun: bool) -> None:
    database, waiting = hold()
    if has_begun:
        assert begin(database, waiting) == [URL]
    suppress(database)
    assert not claim(database, NOW_MS + 2 * LEASE_MS)
    assert list_rows(database) == [(State.SUPPRESSED, "unsubscribed")]
    assert database.execute("SELECT doubt FROM delivery").fetchall() == [(int(has_begun),)]


def test_an_erasure_looks_at_no_route_of_others_and_its_own_end_when_due() -> None:
    options = Options(steps=(Step("webhook", "sent", 1), Step("inbox", "seen", 1)))
    database, waiting = hold(options=options)
    assert len(waiting) == 1 and database.execute("SELECT count(*) FROM route").fetchone() == (1,)

    def count_steps() -> int:
        """What the erasure of another receiver takes, in tens of instructions."""
        receivers.put_receiver(database, "t", "other", b"{}", 1)
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        database.set_progress_handler(count, 10)
        assert receivers.delete_receiver(database, "t", "other")
        database.set_progress_handler(None, 0)
        return counted

    before = count_steps()
    late_ms = NOW_MS + 10**9
    rows = [(2, rid, 0, late_ms, late_ms) for rid in range(1_000, 3_000)]
    database.executemany("INSERT INTO route VALUES (?, ?, ?, ?, ?)", rows)
    assert count_steps() < before + 50
    erase(database)
    assert steps.advance_routes(database, ("webhook", "inbox"), NOW_MS + 2_000, 9) == [""]
    assert database.execute("SELECT count(*) FROM route WHERE nid = 1").fetchone() == (0,)
    assert database.execute("SELECT count(*) FROM delivery WHERE channel = 'inbox'").fetchone() == (0,)


def test_the_jobs_of_a_tenant_that_is_deleted_end_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "ROWS", 10)
    database, _ = hold()
    tenants.put_tenant(database, "t")
    for number in range(34):
        accept.accept(database, Draft("t", f"n{number}", b"f", b"{}", ("ann",), (), False, 10**13), NOW_MS)
    accept.route(database, ("webhook",), NOW_MS, 99)
    changed = [database.total_changes]
    assert leaving.begin(database, "t") is not None
    changed.append(database.total_changes)
    after: str | None = ""
    while after is not None:
        after = leaving.cancel_some(database, "t", after)
        changed.append(database.total_changes)
    units = [now - last for last, now in pairwise(changed)]
    assert len(units) == 5 and max(units) <= 20, "ten notifications and their jobs"
    assert database.execute("SELECT count(*) FROM notification WHERE state <> 'cancelled'").fetchone() == (0,)
    assert jobs.claim_job(database, "webhook", None, NOW_MS + 10**6, LEASE_MS) is None
