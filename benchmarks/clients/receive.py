"""One client for Python, timed: reads COUNT messages of a subject, prints the CPU of each in microseconds.

    python receive.py URL SUBJECT COUNT WARM ENCODING       with PYTHONPATH at the client to measure

The first WARM messages do not count. It uses nothing but what every version of the client has.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time

from godwit.client import Client


async def main(url: str, subject: str, count: int, warm: int, encoding: str) -> None:
    # Versions before the renames called the option `wire`.
    chosen = {"binary": {"encoding": "binary"}, "json": {}}[encoding]
    async with Client(url, **chosen) as client:
        messages = client.subscribe(subject, last=count)
        for _ in range(warm):
            await anext(messages)
        gc.collect()
        began = time.process_time_ns()
        for _ in range(count - warm):
            await anext(messages)
        print((time.process_time_ns() - began) / 1_000 / (count - warm))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
