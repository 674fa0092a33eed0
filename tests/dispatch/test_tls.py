"""Dispatch over TLS: the certificate of [tls], renewed by SIGHUP, and commands that trust exactly that one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import sys
from pathlib import Path

import aiohttp
import pytest

from godwit.config import build_config
from godwit.errors import ConfigInvalid
from tests.authority import Authority
from tests.dispatch.test_process import DEADLINE_S, send, serve

OLD, NEW = "old.example", "new.example"


async def read_name(address: str, authority: Authority) -> str:
    """The name in the certificate that a new connection gets."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(authority.file))
    context.check_hostname = False
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    shown = writer.get_extra_info("peercert")["subjectAltName"][0][1]
    writer.close()
    return str(shown)


def make_settings(folder: Path) -> tuple[Authority, dict[str, object]]:
    authority = Authority(folder)
    chain, private = authority.issue(OLD, file="node")
    return authority, {"dispatch.tls": "true", "tls.certificate_files": chain, "tls.key_files": private}


async def test_the_api_speaks_tls_and_a_hangup_renews_its_certificate(tmp_path: Path) -> None:
    authority, settings = make_settings(tmp_path)
    async with asyncio.timeout(DEADLINE_S):
        process, line = await serve(tmp_path, more=settings)
        try:
            address = dict(word.split("=", 1) for word in line.split()[1:])["dispatch"]
            context = ssl.create_default_context(cafile=str(authority.file))
            async with aiohttp.ClientSession() as http:
                url = f"https://{address}/health/live"
                async with http.get(url, ssl=context, server_hostname=OLD) as answered:
                    assert answered.status == 200
            code, output = await send(tmp_path, "--to", "user:42", "--text", "hi", "--id", "n1")
            assert (code, json.loads(output)) == (0, {"id": "n1", "state": "accepted"})
            private = tmp_path / "node.key"
            private.write_text("broken")
            process.send_signal(signal.SIGHUP)
            assert await read_name(address, authority) == OLD
            authority.issue(NEW, file="node")
            while await read_name(address, authority) != NEW:
                process.send_signal(signal.SIGHUP)
            code, output = await send(tmp_path, "--to", "user:42", "--text", "hi")
            assert code == 0, output
        finally:
            process.terminate()
            assert await process.wait() == 0


async def test_dispatch_alone_renews_its_certificate_too(tmp_path: Path) -> None:
    authority, settings = make_settings(tmp_path)
    given = {**settings, "dispatch.address": "127.0.0.1:0", "dispatch.node_url": "ws://127.0.0.1:9"}
    words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "godwit", "dispatch", "run", "all", "--data", str(tmp_path), *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            assert process.stdout is not None
            address = (await process.stdout.readline()).decode().strip().partition("dispatch=")[2]
            assert await read_name(address, authority) == OLD
            authority.issue(NEW, file="node")
            while await read_name(address, authority) != NEW:
                process.send_signal(signal.SIGHUP)
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_tls_needs_a_certificate() -> None:
    with pytest.raises(ConfigInvalid, match=r"dispatch\.tls"):
        build_config({"dispatch": {"tls": True}}, {}, {})


async def test_a_handshake_that_does_not_come_ends_its_connection(tmp_path: Path) -> None:
    _, settings = make_settings(tmp_path)
    async with asyncio.timeout(DEADLINE_S):
        process, line = await serve(tmp_path, more={**settings, "dispatch_limits.request_head_ms_max": 300})
        try:
            host, _, port = dict(word.split("=", 1) for word in line.split()[1:])["dispatch"].rpartition(":")
            for said in (b"", b"\x16\x03\x01\x02\x00"):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(said)
                assert await reader.read() == b""
                writer.close()
        finally:
            process.kill()
            await process.wait()
