"""Read a few messages at a time across runs of this program: nothing is missed and nothing comes twice.

    python examples/resume.py /numbers 2 positions.json [ws://127.0.0.1:8800]

The position of each subscription is saved in a file. A message counts as read when the program asks for the next one, so a
message whose handling was interrupted is delivered again.
"""

import asyncio
import sys

from godwit.client import Client, PositionFile


async def read(selector: str, count: int, file: str, server: str) -> None:
    async with Client(server, positions=PositionFile(file)) as client:
        messages = client.subscribe(selector, last=1_000)  # used if the file has no position yet
        for _ in range(count):
            message = await anext(messages)
            print(message.position, message.subject, message.content.decode(), flush=True)


if __name__ == "__main__":
    server = sys.argv[4] if len(sys.argv) > 4 else "ws://127.0.0.1:8800"
    asyncio.run(read(sys.argv[1], int(sys.argv[2]), sys.argv[3], server))
