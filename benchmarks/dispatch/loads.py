"""Measures dispatch: accepting over HTTP, one send to very many inboxes, accepting during it, and imports.

The generator runs on the same machine. CPU times are the whole server process's: node, dispatch and store. Receivers have a zone, and
half of them quiet hours.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from .server import Options, Served, list_quantiles, served

IN_FLIGHT = 32


async def accept(server: Served, receivers: int, until: asyncio.Event) -> dict[str, float]:
    """Sends notifications to one receiver each until the event is set; rate and latency."""
    latencies: list[float] = []

    async def work() -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        while not until.is_set():
            number = next(server.numbers)
            to = {"receiver": f"user:{number % receivers}"}
            body = json.dumps({"to": to, "content": {"title": "Hello", "body": "It works."}}).encode()
            head = (
                f"POST /v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
                f"Idempotency-Key: {number}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            begin = time.perf_counter()
            writer.write(head.encode() + body)
            answered = await reader.readuntil(b"\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 202"), answered
            size = int(answered.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            latencies.append(time.perf_counter() - begin)
        writer.close()

    began, cpu_s = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    took_s, used_s = time.perf_counter() - began, server.cpu_s() - cpu_s
    return {
        "accepts_per_s": len(latencies) / took_s,
        **list_quantiles(latencies),
        "cpu_us_per_accept": used_s / len(latencies) * 1e6,
    }


async def accept_and_settle(server: Served, receivers: int, seconds: float) -> dict[str, float]:
    """Accepts for some seconds, then waits until no job is open: what accepting leaves to do counts, too."""
    commits, cpu_s, first = server.read_metric("commits_total"), server.cpu_s(), next(server.numbers)
    until = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, until.set)
    load = await accept(server, receivers, until)
    accepted, began = next(server.numbers) - first - 1, time.perf_counter()
    left = await asyncio.to_thread(server.read_metric, "jobs_open")
    while await asyncio.to_thread(server.read_metric, "jobs_open"):  # noqa: ASYNC110  # the server announces nothing
        await asyncio.sleep(0.05)
    return {
        **load,
        "jobs_open_at_end": left,
        "settled_after_s": time.perf_counter() - began,
        "commits_per_accept": (server.read_metric("commits_total") - commits) / accepted,
        "cpu_us_per_accept_settled": (server.cpu_s() - cpu_s) / accepted * 1e6,
    }


def import_receivers(server: Served, receivers: int) -> dict[str, float]:
    """Receivers, and a group of all of them."""
    quiet = {"quiet": {"start": "22:00", "end": "07:00"}}
    rows = ({"id": f"user:{n}", "zone": "Europe/Berlin", **(quiet if n % 2 else {})} for n in range(receivers))
    body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    began, cpu_s = time.perf_counter(), server.cpu_s()
    answer = server.call("POST", "/v1/receivers/import", body)
    assert answer["rejected_count"] == 0
    took_s, used_s = time.perf_counter() - began, server.cpu_s() - cpu_s
    server.call("PUT", "/v1/groups/all", b"{}")
    members = b"".join(b'{"receiver":"user:%d"}\n' % number for number in range(receivers))
    server.call("POST", "/v1/groups/all/import?version=1", members)
    server.call("PUT", "/v1/groups/all/version", b'{"version":1}')
    return {"receivers_per_s": receivers / took_s, "cpu_us_per_receiver": used_s / receivers * 1e6}


async def send_to_all(server: Served, name: str, receivers: int) -> dict[str, float]:
    """One notification to the group; receivers a second, and what memory grew."""
    body = json.dumps({"to": {"group": "all"}, "content": {"title": "news"}}).encode()
    began, cpu_s, rss_mb = time.perf_counter(), server.cpu_s(), server.rss_mb()
    peak_mb = rss_mb
    await asyncio.to_thread(server.call, "PUT", f"/v1/notifications/{name}", body)
    while (answer := await asyncio.to_thread(server.call, "GET", f"/v1/notifications/{name}"))["state"] != "settled":
        peak_mb = max(peak_mb, server.rss_mb())
        await asyncio.sleep(0.05)
    assert answer["counts"] == {"inbox": {"sent": receivers}}, answer
    took_s, used_s = time.perf_counter() - began, server.cpu_s() - cpu_s
    return {
        "receivers_per_s": receivers / took_s,
        "receivers_per_cpu_s": receivers / used_s,
        "rss_growth_mb": peak_mb - rss_mb,
    }


async def measure(options: Options) -> dict[str, Any]:
    """Import, accepting, one send to all, and both at once, over one store."""
    receivers, loads = options.receivers or 100_000, {}
    async with served(options.folder) as server:
        loads["import"] = await asyncio.to_thread(import_receivers, server, receivers)
        loads["accept, 32 in flight"] = await accept_and_settle(server, receivers, options.seconds)
        loads["one send to all inboxes"] = await send_to_all(server, "all-1", receivers)
        until = asyncio.Event()
        accepting = asyncio.create_task(accept(server, receivers, until))
        sent = await send_to_all(server, "all-2", receivers)
        until.set()
        loads["accept during a send to all inboxes"] = {**await accepting, "send": sent}
    return {"receivers": receivers, "loads": loads}
