"""The trials' own clients with a node that is killed."""

from __future__ import annotations

import asyncio

import pytest

from tests.trials.following import reach


@pytest.mark.parametrize(("said", "error"), [(b"", ConnectionError), (b"HTTP/1.1 404 No\r\n\r\n", Exception)])
async def test_an_end_within_the_handshake_is_a_lost_connection(said: bytes, error: type[Exception]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(error) as raised:
            async with reach(f"ws://{host}:{port}"):
                pass
        assert isinstance(raised.value, ConnectionError) == (not said)
