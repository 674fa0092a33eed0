"""Print everything that happens on a pattern, gaps included.

    python examples/tail.py '/host/**' [ws://127.0.0.1:8800]

The client reconnects by itself and resumes at its position. Messages that are no longer available appear as a Gap, in order,
among the messages.
"""

import asyncio
import contextlib
import sys

from godwit.client import Client, Gap, Message


async def tail(pattern: str, server: str) -> None:
    async with Client(server) as client:
        async for item in client.subscribe(pattern).items():
            if isinstance(item, Message):
                print(item.position, item.subject, item.content.decode(errors="replace"), flush=True)
            elif isinstance(item, Gap):
                print(f"-- {item.missed} messages of {item.subject} are gone: {item.reason}", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(tail(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "ws://127.0.0.1:8800"))
