"""One send for each address value: whose value it is, when addresses are deleted and changed while deliveries wait."""

from __future__ import annotations

import sqlite3

import pytest

from godwit.dispatch.model import Options, State
from godwit.dispatch.stores.sqlite import accept, fanout, jobs, receivers
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.schema import TABLES, add_functions
from godwit.dispatch.vault import Vault

NOW_MS = 1_767_225_600_000
SAME, OTHER = "https://a.example/", "https://b.example/"


def open_store(values: dict[str, str]) -> sqlite3.Connection:
    """Receivers with a webhook each, and a notification to all of them that waits for 08:00."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    add_functions(database, Vault([bytes(32)]))
    for name, value in values.items():
        receivers.put_receiver(database, "t", name, b"{}", 1)
        receivers.put_address(database, "t", name, "w", "webhook", value)
    options = Options(dedupe=True, local="2026-01-01T08:00:00")
    assert not accept.accept(
        database, Draft("t", "n", b"f", b"{}", tuple(values), (), False, 10**13, options=options), NOW_MS
    ).unknown
    accept.route(database, ("webhook",), NOW_MS, 9)
    job = jobs.claim_job(database, "webhook", "t", NOW_MS, 1_000, 2)
    assert job is not None
    jobs.commit_page(database, job, jobs.read_page(database, job, 9, NOW_MS), NOW_MS + 1_000, NOW_MS)
    return database


def claim(database: sqlite3.Connection) -> list[str]:
    """What goes out once it is 08:00."""
    due_ms = NOW_MS + 9 * 3_600_000
    claimed = fanout.claim_due(database, "webhook", due_ms, due_ms + 30_000, 9, ())
    return [shipment.target.value for shipment in claimed]


def list_states(database: sqlite3.Connection) -> list[tuple[str, State, str]]:
    rows = database.execute("SELECT name, state, reason FROM delivery JOIN receiver USING (rid) ORDER BY name")
    return [(name, State(state), reason) for name, state, reason in rows]


def count_taken(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT count(*) FROM sent_value").fetchone()[0])


def test_a_deleted_address_does_not_keep_its_value_taken() -> None:
    database = open_store({"ann": SAME})
    receivers.delete_address(database, "t", "ann", "w")
    assert not claim(database)
    assert list_states(database) == [("ann", State.FAILED, "address")]
    assert count_taken(database) == 0


def test_a_changed_address_does_not_free_the_value_of_another_delivery() -> None:
    database = open_store({"ann": SAME, "bob": OTHER})
    receivers.put_address(database, "t", "ann", "w", "webhook", OTHER)
    assert claim(database) == [OTHER]
    [first, second] = list_states(database)
    assert {first[1], second[1]} == {State.QUEUED, State.COLLAPSED}
    assert "duplicate_address" in (first[2], second[2])
    assert count_taken(database) == 1


def test_a_changed_address_takes_its_new_value_and_frees_the_old_one() -> None:
    database = open_store({"ann": SAME})
    receivers.put_address(database, "t", "ann", "w", "webhook", OTHER)
    assert claim(database) == [OTHER]
    assert count_taken(database) == 1


@pytest.mark.parametrize("bob", [SAME, "https://c.example/"])
@pytest.mark.parametrize("names", [("ann", "bob"), ("bob", "ann")])
def test_addresses_that_move_between_waiting_receivers_each_get_it(bob: str, names: tuple[str, str]) -> None:
    database = open_store({name: {"ann": SAME, "bob": OTHER}[name] for name in names})
    receivers.put_address(database, "t", "bob", "w", "webhook", bob)
    receivers.put_address(database, "t", "ann", "w", "webhook", OTHER)
    assert sorted(claim(database)) == sorted([OTHER, bob])
    assert {state for _, state, _ in list_states(database)} == {State.QUEUED}
    assert count_taken(database) == 2


def test_what_gave_its_value_back_still_goes_out() -> None:
    database = open_store({"ann": SAME})
    database.execute("DELETE FROM sent_value")
    assert claim(database) == [SAME]
    assert database.execute("SELECT rid FROM sent_value").fetchall() == [(1,)]
