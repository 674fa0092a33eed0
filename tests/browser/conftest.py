"""Fixtures of the JavaScript client's tests: its package as `npm pack` makes it, served with test pages."""

import asyncio
import fcntl
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.console.conftest import browser, chromium, page

__all__ = ["browser", "chromium", "package", "page", "serve"]  # the browser is the console tests' own

Serve = Callable[[str], Awaitable[str]]


@pytest.fixture(scope="session")
def package(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder, unpacked: what a user gets, and nothing else."""
    folder = tmp_path_factory.mktemp("package")
    npm = shutil.which("npm")
    assert npm is not None, "npm is missing: make check names the way to get it"

    async def pack() -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(npm, "pack", "--json", "--pack-destination", str(folder)),
            cwd=root / "clients/javascript",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        return output

    types = root / "clients/javascript/types"
    with (tmp_path_factory.getbasetemp().parent / "npm-pack.lock").open(
        "w"
    ) as lock:  # one worker at a time empties folders
        fcntl.flock(lock, fcntl.LOCK_EX)
        types.mkdir(exist_ok=True)
        (types / "stale.d.ts").touch()  # as a module leaves behind that was renamed
        packed = json.loads(asyncio.run(pack()))
    [entry] = packed if isinstance(packed, list) else packed.values()  # npm has changed its mind about it
    shutil.unpack_archive(folder / entry["filename"], folder)
    return folder / "package"


@pytest_asyncio.fixture(loop_scope="session")
async def serve(package: Path) -> AsyncIterator[Serve]:
    """Serves a page with the package beside it; returns its address."""
    runners: list[web.AppRunner] = []

    async def begin(html: str) -> str:
        async def show(request: web.Request) -> web.Response:
            return web.Response(text=html, content_type="text/html")

        app = web.Application()
        app.router.add_get("/", show)
        app.router.add_static("/godwit-client", package)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}/"

    yield begin
    for runner in runners:
        await runner.cleanup()
