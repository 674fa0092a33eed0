"""/v1/series: the samples of series.py, taken once a second without any request, so that a chart has data when it is opened.

Owns the one task that samples. A sample costs one read of the engine's statistics, on a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import psutil
from aiohttp import web

from ..logs import read_logger
from .query import read_flag, read_number
from .series import INTERVAL_MS, Cost, Series
from .view import NodeView

TIME_MS_MAX = 2**53 - 1


def add_routes(app: web.Application, view: NodeView) -> None:
    """The route, and the sampling for as long as the port is open."""
    series = Series()

    async def show_series(request: web.Request) -> web.Response:
        after = read_number(request, "after", 0, 0, TIME_MS_MAX)
        has_shards = read_flag(request, "shards")
        return web.json_response(series.show(after, has_shards=has_shards))

    async def keep_sampling(_app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(_sample(view, series), name="godwit-series")
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    app.router.add_get("/v1/series", show_series)
    app.cleanup_ctx.append(keep_sampling)


async def _sample(view: NodeView, series: Series) -> None:
    process, loop = psutil.Process(), asyncio.get_running_loop()
    next_s = loop.time()
    while True:
        try:
            stats = await asyncio.to_thread(view.engine.stats)
            times = process.cpu_times()
            cost = Cost(times.user + times.system, process.memory_info().rss)
            # Read after the statistics: a subject that the monitor adds in between must not count as a user's.
            stats = {**stats, "own_subjects": view.monitor.own_subjects}
            series.add(time.time_ns() // 1_000_000, time.monotonic(), stats, cost)
        except Exception as error:  # one missing point is better than no more points
            read_logger().warning("sample_failed", reason=f"{type(error).__name__}: {error}")
        next_s = max(next_s + INTERVAL_MS / 1000, loop.time())
        await asyncio.sleep(next_s - loop.time())
