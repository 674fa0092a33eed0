"""The baseline in Python: reads COUNT messages of a subject, prints the CPU of each in microseconds, and keeps nothing.

    python bare.py URL SUBJECT COUNT WARM ENCODING       ENCODING is json

A loop over the WebSocket library that the client uses: it parses each frame and counts its messages. No position, no bound, no
reconnect, no type for a message.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time

from websockets.asyncio.client import connect
from websockets.typing import Subprotocol


async def main(url: str, subject: str, count: int, warm: int) -> None:
    async with connect(
        f"{url}/v1/live", subprotocols=[Subprotocol("godwit.v1.json")], compression=None, max_size=None
    ) as socket:
        await socket.send(json.dumps({"id": 1, "connect": {"client": "bare/1"}}))
        await socket.send(json.dumps({"id": 2, "subscribe": subject, "last": count}))
        read = began = counted = 0
        while read < count:
            frame = json.loads(await socket.recv())
            read += sum("content" in push for push in (frame if isinstance(frame, list) else [frame]))
            if not began and read >= warm:
                gc.collect()
                began, counted = time.process_time_ns(), read
        print((time.process_time_ns() - began) / 1_000 / (count - counted))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
