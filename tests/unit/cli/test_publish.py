"""`godwit publish` against a scripted node: kinds, order, acknowledgements, exit codes."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from godwit.cli import publish as publishing
from godwit.cli.publish import publish, publish_all, read_content, read_fields
from godwit.client import JsonText
from godwit.errors import ConfigInvalid, GodwitError
from tests.unit.client.peer import Peer

DEFAULTS: dict[str, Any] = {
    "content": None, "kind": None, "timeout_s": 5.0, "quiet": False, "standard": False,
    "retain": None, "merge": None, "fields": (), "key": None, "reply_to": None, "ack": None,
}  # fmt: skip


async def invoke(peer: Peer, *words: str) -> Result:
    def call() -> Result:
        return CliRunner().invoke(publish, ["--server", peer.url, *words])

    return await asyncio.to_thread(call)


async def test_a_message_is_published_and_its_position_printed() -> None:
    async with Peer() as peer:
        outcome = await invoke(peer, "/a/b", '{"n":1.10}')
    assert outcome.exit_code == 0 and outcome.stdout.split()[0] == "/a/b" and "." in outcome.stdout.split()[1]
    [command] = [heard for heard in peer.heard if "publish" in heard]
    assert command["publish"] == "/a/b" and command["content"] == {"n": 1.1}
    assert not outcome.stderr


async def test_fields_are_sent_beside_the_content() -> None:
    async with Peer() as peer:
        outcome = await invoke(peer, "/a", "x", "--field", "unit=C", "--field", "note=a=b", "--field", "old")
    assert outcome.exit_code == 0, outcome.stderr
    [command] = [heard for heard in peer.heard if "publish" in heard]
    assert command["fields"] == {"unit": "C", "note": "a=b", "old": None}


@pytest.mark.parametrize(("fields", "why"), [(["=x"], "NAME=VALUE"), (["a=1", "a=2"], "names a a second time")])
def test_fields_of_the_wrong_form_are_refused(fields: list[str], why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        read_fields(tuple(fields))


@pytest.mark.parametrize("content", ['{"n":1', "3", "[{}]", '"{}"', "null"])
async def test_a_mistyped_patch_is_refused_and_replaces_nothing(content: str) -> None:
    async with Peer() as peer:
        outcome = await invoke(peer, "/a", content, "--merge")
        assert (await invoke(peer, "/b", ' {"n":1}', "--merge")).exit_code == 0
    assert outcome.exit_code == 1 and "the content is not" in outcome.stderr
    assert [heard["publish"] for heard in peer.heard if "publish" in heard] == ["/b"]


@pytest.mark.parametrize("kind", ["--text", "--bytes"])
def test_a_patch_of_another_kind_is_refused(kind: str) -> None:
    outcome = CliRunner().invoke(publish, ["/a", "x", "--merge", kind])
    assert outcome.exit_code == 2 and f"{kind} says otherwise" in outcome.output


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    reading, writing = os.pipe()
    with os.fdopen(reading) as file:
        monkeypatch.setattr("godwit.cli.publish.sys.stdin", file)
        yield writing


async def test_lines_of_standard_input_are_messages_in_their_order(
    stdin: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(stdin, b'1\n"two"\r\nthree words\n{"four":4}')
    os.close(stdin)
    async with Peer() as peer:
        assert await publish_all((peer.url,), None, subject="/lines", **DEFAULTS) == 0
    assert capsys.readouterr().out.splitlines() == [f"/lines 7.{number}" for number in range(1, 5)]
    contents = [heard.get("content", heard.get("text")) for heard in peer.heard if "publish" in heard]
    assert contents == [1, "two", "three words", {"four": 4}]


async def test_a_node_that_does_not_answer_is_said_and_exits_1() -> None:
    async with Peer() as peer:
        peer.is_mute = True
        outcome = await invoke(peer, "/a", "1", "--timeout", "0.05")
    assert outcome.exit_code == 1 and "no answer in 0.05 s" in outcome.stderr
    assert "not connected: " in outcome.stderr


def test_one_key_for_many_messages_is_refused() -> None:
    outcome = CliRunner().invoke(publish, ["/a", "--key", "k" * 16])
    assert outcome.exit_code == 2 and "--key is for one message" in outcome.output


async def test_content_that_only_looks_like_json_is_text_with_one_warning_a_run(
    stdin: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(stdin, b"{a\n[b\n{c\n")
    os.close(stdin)
    async with Peer() as peer:
        assert await publish_all((peer.url,), None, subject="/lines", **DEFAULTS) == 0
    assert [heard["text"] for heard in peer.heard if "publish" in heard] == ["{a", "[b", "{c"]
    [warning] = capsys.readouterr().err.splitlines()
    assert "begins with { is not valid JSON" in warning


async def test_empty_input_publishes_nothing_and_says_so(stdin: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.close(stdin)
    async with Peer() as peer:
        assert await publish_all((peer.url,), None, subject="/lines", **DEFAULTS) == 0
    assert "nothing was published" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b'{"a": 1.10}', None, JsonText('{"a": 1.10}')),
        (b'"x"', "json", JsonText('"x"')),
        (b"plain", None, "plain"),
        (b"1", "text", "1"),
        (b"1", "bytes", b"1"),
        (b"\xff", None, b"\xff"),
        (b"", None, ""),
        (b"{broken", None, "{broken"),
        (b'{"a": NaN}', None, '{"a": NaN}'),
        (b"-Infinity", None, "-Infinity"),
        (b"1" * 5_000, None, JsonText("1" * 5_000)),
    ],
)
def test_content_is_json_where_it_is_json_unless_a_kind_was_said(
    content: bytes, kind: str | None, expected: Any
) -> None:
    read = read_content(content, kind)
    assert read == expected and type(read) is type(expected)


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        (b"x", "json", "not JSON"),
        (b"[NaN]", "json", "NaN is not JSON"),
        (b"\xff", "text", "not UTF-8"),
        (b"[" * 200_000 + b"]" * 200_000, "json", "too deeply"),
        (b"[" * 200_000 + b"]" * 200_000, None, "too deeply"),
    ],
)
def test_content_that_is_not_what_was_said_is_refused(content: bytes, kind: str, why: str) -> None:
    with pytest.raises(GodwitError, match=why):
        read_content(content, kind)


async def test_a_line_without_an_end_is_refused_and_an_interrupt_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "LINE_BYTES_MAX", 200_000)
    (tmp_path / "lines").write_bytes(b"one\r\n" + b"x" * 1_000_000)
    found, turns = [], 0

    async def read() -> None:
        async for line in publishing._list_contents(None):
            found.append(line)

    with (tmp_path / "lines").open() as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        reading = asyncio.create_task(read())
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
    with pytest.raises(GodwitError, match="line 2 of standard input is longer than 200000 bytes"):
        await reading
    assert found == [b"one"] and turns > 3  # the loop had its turns: that is when an interrupt is heard
