"""The log of a client without a server: the first failure as a warning of every program, the others as debug messages."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from http import HTTPStatus

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from godwit.client import Client, ClientError, Settings
from tests.unit.client.peer import Peer
from tests.waiting import until

QUICK = Settings(reconnect_first_ms=5, reconnect_max_ms=20)


async def test_the_first_failed_attempt_is_one_warning_with_address_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "godwit.client")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"
    async with asyncio.timeout(20), Client(url, settings=QUICK):
        await until(lambda: len(caplog.records) >= 3)
    first, *later = caplog.records
    assert first.levelno == logging.WARNING
    assert first.getMessage() == f"cannot connect to {url}/v1/live: Connection refused; retrying"
    assert {record.levelno for record in later} == {logging.INFO}


async def test_a_connection_that_was_there_is_disconnected_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "godwit.client")
    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, settings=QUICK) as client:
        await client.connected()
        await peer.cut()
        await until(lambda: caplog.records)
        await client.connected()
        address = f"{peer.url}/v1/live"
    assert caplog.records[0].levelno == logging.INFO
    assert caplog.records[0].getMessage().startswith(f"disconnected from {address} (")


async def test_a_port_that_is_not_for_clients_ends_the_client_with_its_sentence() -> None:
    body = json.dumps({"status": 421, "title": "this is the admin port"}).encode()
    asked = []

    def misdirect(_: ServerConnection, request: Request) -> Response:
        asked.append(request.path)
        headers = Headers({"Content-Length": str(len(body))})
        return Response(HTTPStatus.MISDIRECTED_REQUEST, "Misdirected Request", headers, body)

    async def never(_: ServerConnection) -> None:
        raise AssertionError

    async with asyncio.timeout(20), serve(never, "127.0.0.1", 0, process_request=misdirect) as server:
        port = server.sockets[0].getsockname()[1]
        async with Client(f"ws://127.0.0.1:{port}", settings=QUICK) as client:
            with pytest.raises(ClientError, match="HTTP 421: this is the admin port"):
                await client.connected()
            with pytest.raises(ClientError, match="this is the admin port"):
                await client.publish("/a", 1)
    assert asked == ["/v1/live"]
