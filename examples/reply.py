"""Request and reply: a worker answers sums, a client asks for one.

    python examples/reply.py [ws://127.0.0.1:8800]

The request names a reply subject of its own; the answer is published there. Both ends are ordinary clients.
"""

import asyncio
import sys

from godwit.client import Client


async def answer_sums(worker: Client, ready: asyncio.Event) -> None:
    requests = worker.subscribe("/sums", snapshot=False)
    await requests.joined()
    ready.set()
    async for request in requests:
        await worker.reply(request, {"sum": sum(request.json()["numbers"])})


async def main(server: str) -> None:
    async with Client(server) as worker, Client(server) as client:
        ready = asyncio.Event()
        working = asyncio.create_task(answer_sums(worker, ready))
        await ready.wait()
        answer = await client.request("/sums", {"numbers": [1, 2, 3]})
        print(answer.json()["sum"])
        working.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:8800"))
