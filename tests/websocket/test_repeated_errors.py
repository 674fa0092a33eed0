"""An error that is raised again and again does not grow: each place it was raised before would keep its variables alive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from godwit import testing
from godwit.client import Client, CommandRefused, GodwitError
from tests.desk import Desk

DEADLINE_S = 30
DESK = Desk()


def count_places(error: BaseException) -> int:
    count, place = 0, error.__traceback__
    while place is not None:
        count, place = count + 1, place.tb_next
    return count


async def raise_often(method: Callable[[], Awaitable[object]], kind: type[GodwitError]) -> set[int]:
    """The numbers of places of all errors but the first."""
    found = []
    for _ in range(20):
        with pytest.raises(kind) as raised:
            await method()
        found.append(count_places(raised.value))
    return set(found[1:])


async def test_calls_of_a_closed_client_raise_the_same_error_with_one_place_each() -> None:
    async with testing.node() as node, asyncio.timeout(DEADLINE_S):
        async with Client(node.url) as client:
            subscription = client.subscribe("/a")
            await subscription.joined()
        methods: dict[str, Callable[[], Awaitable[object]]] = {
            "publish": lambda: client.publish("/a", 1),
            "connected": client.connected,
            "joined": subscription.joined,
            "request": lambda: client.request("/a", 1),
        }
        for name, method in methods.items():
            assert len(await raise_often(method, GodwitError)) == 1, name


async def test_a_refused_subscription_raises_the_same_error_with_one_place_each() -> None:
    access = {"mode": "custom", "authorizer": f"{__name__}:DESK"}
    async with (
        testing.node({"access": access}) as node,
        asyncio.timeout(DEADLINE_S),
        Client(node.url, token="a") as client,
    ):
        subscription = client.subscribe("/none")
        assert len(await raise_often(subscription.joined, CommandRefused)) == 1
        assert len(await raise_often(lambda: anext(subscription), CommandRefused)) == 1
