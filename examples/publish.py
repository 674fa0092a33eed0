"""Publish each line of standard input as one message, and print its position.

    seq 3 | python examples/publish.py /numbers [ws://127.0.0.1:8800]

Each publish waits for its acknowledgement. If the connection breaks before, the client sends the message again with the
same number, so that it becomes one message.
"""

import asyncio
import sys

from godwit.client import Client


async def publish(subject: str, server: str) -> None:
    async with Client(server) as client:
        for line in sys.stdin:
            published = await client.publish(subject, line.rstrip("\n"))
            print(published.position, flush=True)


if __name__ == "__main__":
    asyncio.run(publish(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "ws://127.0.0.1:8800"))
