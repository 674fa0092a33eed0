"""A node whose authorizer leaves something behind that does not end: SIGTERM ends the process all the same, with 0."""

from __future__ import annotations

import asyncio
import atexit
import threading
from contextlib import suppress

import pytest

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal
from tests.node_process import running_node
from tests.raw_client import raw_client

DEADLINE_S = 60


class Finalized:
    def __del__(self) -> None:
        threading.Event().wait()


class Clinging(Authorizer):
    """A token names what is left behind."""

    def __init__(self) -> None:
        self.left: list[object] = []

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        match question.token:
            case "task":
                while True:
                    with suppress(BaseException):
                        await asyncio.sleep(3_600)
            case "thread":
                await asyncio.to_thread(threading.Event().wait)
            case "exit handler":
                atexit.register(threading.Event().wait)
            case "finalizer":
                self.left.append(Finalized())
        return Grant("anybody")


AUTHORIZER = Clinging()


@pytest.mark.parametrize("token", ["task", "thread", "exit handler", "finalizer"])
async def test_a_node_ends_whatever_its_authorizer_left(token: str) -> None:
    settings = {
        "access.mode": "custom",
        "access.authorizer": "tests.hostile.test_exits:AUTHORIZER",
        "access.authorizer_timeout_ms": 200,
    }
    async with running_node(settings) as node, asyncio.timeout(DEADLINE_S):
        async with raw_client(node.url) as client:
            await client.send({"id": 1, "connect": {"token": token}})
            await client.receive()  # an answer, or the end: it has been asked
        assert await node.terminate() == 0
