"""A subscriber that the fault `stall` stops reads nothing, and continues when it may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from godwit.verify.reading import Reading

READERS: list[Callable[[], Reading[asyncio.Event] | Reading[threading.Event]]] = [
    lambda: Reading(asyncio.Event()),
    lambda: Reading(threading.Event()),
]


@pytest.mark.parametrize("make", READERS, ids=["asyncio", "threading"])
def test_a_stalled_reader_waits_until_it_may_go_on(
    make: Callable[[], Reading[asyncio.Event] | Reading[threading.Event]],
) -> None:
    reader = make()
    may_read = reader._may_read
    assert may_read.is_set(), "it reads from the beginning"
    reader.stall(True)
    assert not may_read.is_set()
    reader.stall(False)
    assert may_read.is_set()
    reader.stall(True)
    reader.go_at_full_speed()
    assert may_read.is_set(), "nobody stays stalled at the end"
