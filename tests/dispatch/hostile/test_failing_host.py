"""A host that fails: no room, a disk with errors, a stopped process, a node that hangs. Numbers are the design's."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from godwit.client import Client
from godwit.client.inbox import Inbox
from godwit.config import build_config
from godwit.dispatch.part import DispatchPart
from tests.dispatch.conftest import Running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import ANN
from tests.dispatch.test_process import served
from tests.dispatch.test_webhook import LOOPBACK, endpoint, put_webhook, wait_for_state
from tests.faults.small_disk import small_disk
from tests.node_process import running_node

DEADLINE_S = 180
DISK_BYTES = 96 << 20
NO_JOURNAL = {"journal.enabled": "false"}
CONTENT = {"title": "x", "body": "y" * 9_000}
FAILING_DISK_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return strstr(path, "dispatch.sqlite") && access(getenv("TEST_DISK_FAILS"), F_OK) == 0;
}
#define WRITE(name) ssize_t name(int fd, const void *b, size_t n, off_t at) { \
    static ssize_t (*real)(int, const void *, size_t, off_t); \
    if (!real) real = dlsym(RTLD_NEXT, #name); \
    if (fails(fd)) { errno = EIO; return -1; } return real(fd, b, n, at); }
#define SYNC(name) int name(int fd) { \
    static int (*real)(int); \
    if (!real) real = dlsym(RTLD_NEXT, #name); \
    if (fails(fd)) { errno = EIO; return -1; } return real(fd); }
WRITE(pwrite)
WRITE(pwrite64)
SYNC(fsync)
SYNC(fdatasync)
"""


class Counterpart:
    """A webhook's endpoint that keeps what it was sent, by notification; `gate` holds its answers back."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.unflagged: Counter[str] = Counter()
        self.gate, self.first = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def take(self, request: web.Request) -> web.Response:
        event = await request.json()
        name = event["data"]["notification"]
        self.taken[name] += 1
        self.unflagged[name] += not event.get("possibleduplicate", False)
        self.first.set()
        await self.gate.wait()
        return web.Response()

    async def check(self, both: Running, names: list[str]) -> None:
        """Each arrived; more than once only where its delivery says so, and never twice without a flag."""
        for name in names:
            row = await wait_for_state(both, name, "sent")
            assert self.taken[name] == 1 or row["possible_duplicate"], name
        assert set(names) <= set(self.taken) and max(self.unflagged.values()) == 1


async def send_until_refused(both: Running, names: list[str], begin: int) -> None:
    """Sends until the store is failing; `names` gets those that were accepted."""
    for number in range(begin, begin + 2_000):
        status, answer = await both.api("PUT", f"/v1/notifications/n{number}", {**ANN, "content": CONTENT})
        if status != 202:
            assert (status, answer["code"], answer["retry"], answer["accepted"]) == (503, 4311, True, False)
            return
        names.append(f"n{number}")
    pytest.fail("the disk never failed")


async def fail_and_mend(
    both: Running, url: str, other: Counterpart, fail: Callable[[], object], mend: Callable[[], object]
) -> None:
    """A disk that fails while sends are in flight, and then works again: what was accepted arrives, and nothing is lost."""
    await put_webhook(both, url)
    names = [f"n{number}" for number in range(40)]
    other.gate.clear()
    for name in names:
        assert (await both.api("PUT", f"/v1/notifications/{name}", {**ANN, "content": CONTENT}))[0] == 202
    await other.first.wait()
    fail()
    await send_until_refused(both, names, len(names))
    other.gate.set()  # the outcomes of what is in flight cannot be stored now
    assert (await both.api("GET", "/v1/receivers/ann"))[0] == 200, "reading goes on"
    mend()
    while (await both.api("PUT", f"/v1/notifications/n{len(names)}", ANN))[0] != 202:
        pass
    names.append(f"n{len(names)}")
    await other.check(both, names)


async def test_50_a_full_disk_loses_nothing_that_was_accepted(tmp_path: Path) -> None:
    other = Counterpart()
    async with (
        asyncio.timeout(DEADLINE_S),
        small_disk(tmp_path / "disk", DISK_BYTES) as disk,
        endpoint(other.take) as url,
        served(disk.path, disk.before, NO_JOURNAL, seen=disk.seen) as (_, both),
    ):
        filler = disk.seen / "filler"

        def fill() -> None:
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as output:
                while output.write(bytes(65_536)):
                    pass

        await fail_and_mend(both, url, other, fill, filler.unlink)


async def test_50_a_disk_with_errors_loses_nothing_that_was_accepted(tmp_path: Path) -> None:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no C compiler is here")
    other, flag, library = Counterpart(), tmp_path / "failing", tmp_path / "failing_disk.so"
    (tmp_path / "failing_disk.c").write_text(FAILING_DISK_C)
    build = (compiler, "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "failing_disk.c", "-ldl")
    assert await (await asyncio.create_subprocess_exec(*build)).wait() == 0
    before = ("env", f"LD_PRELOAD={library}", f"TEST_DISK_FAILS={flag}")
    async with asyncio.timeout(DEADLINE_S), endpoint(other.take) as url, served(tmp_path, before) as (_, both):
        await fail_and_mend(both, url, other, flag.touch, flag.unlink)


@pytest.mark.parametrize("lease_ms", [1_000, pytest.param(30_000, marks=pytest.mark.long)])
async def test_52_a_stopped_process_sends_nothing_after_its_leases_without_saying_so(
    tmp_path: Path, lease_ms: int
) -> None:
    """Stopped for twice its leases while sends are in flight and more wait: with the default, for a minute."""
    other = Counterpart()
    names = [f"n{number}" for number in range(30)]
    lease = {"dispatch_limits.lease_ms": lease_ms}
    async with (
        asyncio.timeout(DEADLINE_S),
        endpoint(other.take) as url,
        served(tmp_path, more=lease) as (process, both),
    ):
        await put_webhook(both, url)
        other.gate.clear()
        for name in names:
            await both.api("PUT", f"/v1/notifications/{name}", ANN)
        await other.first.wait()
        process.send_signal(signal.SIGSTOP)
        other.gate.set()
        await leases_over(tmp_path / "dispatch" / "dispatch.sqlite", lease_ms)
        process.send_signal(signal.SIGCONT)
        await other.check(both, names)


async def leases_over(database: Path, more_ms: int) -> None:
    """Returns when every lease of a delivery has been over for a time."""
    reader = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        (last_ms,) = reader.execute("SELECT max(due_ms) FROM delivery WHERE channel = 'webhook'").fetchone()
    finally:
        reader.close()
    left_s = (last_ms + more_ms) / 1_000 - time.time()
    await asyncio.sleep(max(0.0, left_s))  # the process goes by the same clock: time is the condition


@pytest.mark.parametrize("stopped_s", [0, pytest.param(60, marks=pytest.mark.long)])
async def test_53_a_node_that_hangs_delays_only_those_who_are_connected_to_it(
    tmp_path: Path, runtime: Path, stopped_s: int
) -> None:
    """The node is stopped, and later killed; its clients get everything once it answers again."""
    other = Counterpart()
    dispatch = {"enabled": True, "address": "127.0.0.1:0", **LOOPBACK["dispatch"]}
    limits = {"sweep_ms": 100, "inbox_items_max": 100_000}
    part = DispatchPart(
        build_config(
            {**LOOPBACK, "node": {"data_directory": str(tmp_path)}, "dispatch": dispatch, "dispatch_limits": limits},
            {},
            {},
        )
    )
    keys: dict[str, object] = {"dispatch.token_keys_file": tmp_path / "dispatch" / "keys.json"}
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            running_node(keys) as node,
            endpoint(other.take) as url,
            aiohttp.ClientSession() as http,
        ):
            address = await part.start_at(node.url)
            key = (tmp_path / "dispatch" / "admin.key").read_text("ascii")
            both = Running(f"http://{address}", node.url, key, http)
            await put_webhook(both, url)
            token = await both.make_token("ann")
            async with Client(node.url, token=token) as client, Inbox(both.url, token, client=client) as inbox:
                await send_all(both, names := ["n0"])
                await shows(inbox, names)
                node.process.send_signal(signal.SIGSTOP)
                end_s = time.monotonic() + stopped_s
                while len(names) < 100 or time.monotonic() < end_s:
                    await send_all(both, more := [f"n{len(names)}"])
                    names += more
                await other.check(both, names)
                _, answer = await both.api("GET", "/v1/inbox/counts", key=token)
                assert answer["unread"] == len(names), "who asks dispatch itself waits for no node"
                node.process.send_signal(signal.SIGCONT)
                await shows(inbox, names)
    finally:
        await part.stop()


async def send_all(both: Running, names: list[str]) -> None:
    for name in names:
        assert (await both.api("PUT", f"/v1/notifications/{name}", ANN))[0] == 202
        await wait_for(both, name)


async def shows(inbox: Inbox, names: list[str]) -> None:
    """Returns when a connected client has exactly these, the newest first, as far as one page goes."""
    while inbox.unread != len(names) or [item.id for item in inbox.items][:50] != names[::-1][:50]:
        await inbox.changed()
