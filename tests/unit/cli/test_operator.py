"""An operator's commands against a node's admin port: what they change, and the node's own sentence if it refuses."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner

from godwit import testing
from godwit.access.revocation import Revocations
from godwit.cli.operator import call, purge, read_base, reload, revoke
from godwit.engine import Draft
from godwit.errors import ConfigInvalid, NodeFailed
from godwit.testing.fake_engine import FakeEngine, open_fake_engine

TOKEN = "an-admin-token-of-length"


@pytest.fixture
async def node(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[testing.RunningNode]:
    monkeypatch.setenv("GODWIT_ADMIN_TOKEN", TOKEN)
    async with testing.node({"admin": {"token": TOKEN}}, open_engine=open_fake_engine) as running:
        yield running


async def run(command: object, *words: str) -> str:
    def invoke() -> str:
        ran = CliRunner().invoke(command, words, catch_exceptions=False)  # type: ignore[arg-type]  # a click command
        assert ran.exit_code == 0, ran.output
        return ran.output.splitlines(keepends=True)[-1] if words[-1] != "--list" else ran.output

    return await asyncio.to_thread(invoke)


async def test_revoke_lists_and_lifts(node: testing.RunningNode) -> None:
    admin = ("--admin", str(node.admin))
    nobody = "no client with this name"  # on standard error, behind what was ended
    assert nobody in await run(revoke, "--identity", "ann", "--tenant", "acme", *admin)
    assert nobody in await run(revoke, *admin, "--token-id", "t1", "--until", "99999999999999")
    listed = await run(revoke, *admin, "--list")
    assert '"identity": "ann"' in listed and '"until_ms": 99999999999999' in listed
    with pytest.raises(NodeFailed, match="the revocation does not exist"):
        await run(revoke, *admin, "--identity", "ann", "--undo")
    assert await run(revoke, *admin, "--identity", "ann", "--tenant", "acme", "--undo") == "lifted\n"
    assert '"identity"' not in await run(revoke, *admin, "--list")
    with pytest.raises(NodeFailed, match="the revocation does not exist"):
        await run(revoke, *admin, "--identity", "ann", "--undo")
    with pytest.raises(AssertionError, match="either --identity or --token-id"):
        await run(revoke, *admin)


async def test_what_a_revocation_ended_is_told_and_one_that_the_disk_refuses_exits_with_3(
    node: testing.RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Revocations) -> bool:
        return False

    monkeypatch.setattr(Revocations, "keep", refuse)
    ran = await asyncio.to_thread(CliRunner().invoke, revoke, ("--admin", node.admin_url, "--identity", "ann"))
    assert ran.exit_code == 3 and ran.stdout.endswith("revoked: 0 connections, 0 sessions, 0 wills withheld\n")
    assert "may be lost" in ran.stderr


@pytest.mark.parametrize("until", ["1000000", "1900000000"])
async def test_an_end_that_cannot_be_meant_is_refused(node: testing.RunningNode, until: str) -> None:
    with pytest.raises(NodeFailed, match="until_ms is in"):
        await run(revoke, "--admin", str(node.admin), "--identity", "ann", "--until", until)


async def test_purge_says_how_much_and_refuses_what_is_not_there(node: testing.RunningNode) -> None:
    node.node.engine.publish_many([Draft("/a", b"1")])
    assert await run(purge, "--admin", node.admin_url, "/a") == "deleted: 1 message of /a\n"
    for subject, why in (("/a", "the subject does not exist"), ("a", "subject")):
        with pytest.raises(NodeFailed, match=why):
            await run(purge, "--admin", node.admin_url, subject)


async def test_a_purge_that_a_crash_may_undo_is_exit_code_3(
    node: testing.RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.node.engine.publish_many([Draft("/a", b"1")])
    monkeypatch.setattr(FakeEngine, "is_disk_sound", False)
    ran = await asyncio.to_thread(CliRunner().invoke, purge, ("--admin", node.admin_url, "/a"))
    assert (ran.exit_code, ran.stdout) == (3, "deleted: 1 message of /a\n")
    assert "a crash of the node may undo the purge" in ran.stderr


async def test_without_the_token_or_the_node_nothing_happens(
    node: testing.RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GODWIT_ADMIN_TOKEN", "another-one-altogether")
    with pytest.raises(NodeFailed, match="needs the admin token: Authorization: Bearer TOKEN$"):
        await run(purge, "--admin", str(node.admin), "/a")
    monkeypatch.delenv("GODWIT_ADMIN_TOKEN")
    with pytest.raises(NodeFailed, match="needs the admin token.*--token-file FILE, or GODWIT_ADMIN_TOKEN"):
        await run(purge, "--admin", str(node.admin), "/a")
    with pytest.raises(NodeFailed, match="nothing to read again"):
        monkeypatch.setenv("GODWIT_ADMIN_TOKEN", TOKEN)
        await run(reload, "--admin", str(node.admin))
    with pytest.raises(NodeFailed, match="cannot be reached"):
        await asyncio.to_thread(call, "127.0.0.1:1", None, "GET", "/v1/revocations")


@pytest.mark.parametrize(
    "address",
    ["ws://a:1", "file:///etc/passwd", "http://", "a b", "http://a:port", "http://kim:hidden@a", "kim:hidden@a", "é"],
)
def test_an_address_that_is_not_an_admin_ports_is_refused_without_its_password(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in (address, None):
        monkeypatch.setenv("GODWIT_ADMIN_ADDRESS", address)
        with pytest.raises(ConfigInvalid, match="expected http://HOST:PORT") as refused:
            read_base(given)
        assert "hidden" not in str(refused.value)
        assert str(refused.value).startswith("--admin" if given else "GODWIT_ADMIN_ADDRESS")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "not the JSON of an admin port"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000 + b"]" * 200_000, "not the JSON of an admin port"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "HTTP 302 Found"),
        (b"SSH-2.0\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
    ],
)
async def test_whatever_answers_in_place_of_a_node_is_a_sentence(answer: bytes, said: str) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NodeFailed, match=said):
            await asyncio.to_thread(call, f"127.0.0.1:{port}", None, "GET", "/v1/revocations")
