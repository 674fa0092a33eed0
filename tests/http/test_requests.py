"""Every raw request gets what its clause says, with the fields that every answer owes; bytes that end early get 408 or the end."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.http import odd_requests, requests
from tests.http.requests import PATH, Case, chunked, get, post
from tests.node_process import NodeProcess, running_node

DEADLINE_S = 20
QUICK = {"limits.handshake_ms_max": 3000, "limits.message_ms_max": 3000, "limits.close_ms_max": 300}
AFTER = get("Connection: close", target="/v1/openapi.json").encode()
CLOSING = [*requests.CLOSING, *odd_requests.CLOSING]
ALL = [*CLOSING, *requests.MEANING, *odd_requests.MEANING]
DATE = re.compile(rb"\r\nDate: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d GMT\r\n")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node(QUICK) as node:
        yield node


async def tell(node: NodeProcess, sent: bytes, *, ends: bool = False) -> bytes:
    """Everything the node answers until it closes; `ends`: our half is closed behind the request."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(node.host, node.port)
        try:
            writer.write(sent)
            if ends:
                writer.write_eof()
            return await reader.read(-1)
        finally:
            writer.close()


def statuses(answers: bytes) -> list[int]:
    """The status of each answer, whose bodies have the length that they say."""
    found = []
    while answers:
        head, _, rest = answers.partition(b"\r\n\r\n")
        status = int(head[9:12])
        assert head.startswith(b"HTTP/1.1 "), answers[:200]
        if status >= 200:
            assert DATE.search(head + b"\r\n"), head
            found.append(status)
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        assert (length is None) == (status < 200 or status == 204), head
        answers = rest[int(length[1]) if length else 0 :]
    return found


async def test_there_are_enough_of_them_and_no_two_are_the_same() -> None:
    assert len(ALL) >= 161
    assert len({case.name for case in ALL}) == len({case.sent for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ALL])
async def test_a_request_gets_what_its_clause_says(node: NodeProcess, case: Case) -> None:
    is_head = case.sent.startswith(b"HEAD")
    answers = await tell(node, case.sent + (b"" if is_head else AFTER), ends=is_head)
    if is_head:
        assert (
            answers.startswith(b"HTTP/1.1 200 ")
            and answers.endswith(b"\r\n\r\n")
            and b"\r\nContent-Length: " in answers
        )
        return
    first, *others = statuses(answers)
    assert first in case.statuses, answers[:400]
    assert not others or first < 400 or first in {404, 405} or case not in CLOSING, "another request was read behind it"
    if first in {400, 413, 414, 431, 505} and not others:
        assert b"\r\nConnection: close\r\n" in answers
        body = json.loads(answers.partition(b"\r\n\r\n")[2])
        assert body["status"] == first and body["code"] >= 4000
    else:
        # Whatever was not refused as unreadable ends where it says, and the next request is read from there.
        assert others == (
            [] if b"\r\nConnection: close\r\n" in answers.partition(b"\r\n\r\n")[0] + b"\r\n" else [200]
        ), answers


EARLY = {
    "9112 8 nothing at all": (b"", {0}),
    "9112 8 half a request line": (b"GET / HT", {408, 0}),
    "9112 8 half a head": (get().encode()[:-2], {408, 0}),
    "9112 8 half a body": (post("Content-Length: 10", body="hello").encode(), {408, 400, 0}),
    "9112 8 half a chunk": (chunked("A\r\nhello").encode(), {408, 400, 0}),
    "9112 8 no last chunk": (chunked("5\r\nhello\r\n").encode(), {408, 400, 0}),
    "9112 8 half a trailer": (chunked("0\r\nX: a").encode(), {408, 400, 0}),
    "9110 10.1.1 100-continue and nothing": (post("Expect: 100-continue", "Content-Length: 5").encode(), {408, 400, 0}),
}


async def test_what_does_not_come_is_not_awaited_for_ever(node: NodeProcess) -> None:
    answers = await asyncio.gather(*(tell(node, sent) for sent, _ in EARLY.values()))
    for (name, (sent, right)), answer in zip(EARLY.items(), answers, strict=True):
        assert (statuses(answer) or [0])[-1] in right, name
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n") == (b"Expect" in sent), name


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_a_request_in_pieces_is_the_same_request(node: NodeProcess, size: int) -> None:
    whole = post("Content-Length: 5", body="hello") + chunked(
        "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n", "Connection: close"
    )
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(node.host, node.port)
        for begin in range(0, len(whole), size):
            writer.write(whole[begin : begin + size].encode())
            await writer.drain()
            await asyncio.sleep(0)
        assert statuses(await reader.read(-1)) == [201, 201]
        writer.close()


async def test_pipelined_requests_are_answered_in_their_order(node: NodeProcess) -> None:
    requests = [post("Content-Length: 1", body=str(i % 10)) for i in range(300)]
    requests[100] = get(target="/nothing")
    requests[200] = get(target="/v1/snapshot?subject=/http/requests")
    answers = await tell(node, "".join([*requests, get("Connection: close")]).encode())
    expected = [201] * 301
    expected[100], expected[200], expected[300] = 404, 200, 200
    assert statuses(answers) == expected
    positions = [int(at) for at in re.findall(rb'\{"at":"\d+\.(\d+)"\}', answers)]
    assert positions == list(range(positions[0], positions[0] + 298))


async def test_a_client_that_ends_its_half_still_reads_its_answers(node: NodeProcess) -> None:
    assert statuses(await tell(node, post("Content-Length: 1", body="x").encode() + get().encode(), ends=True)) == [
        201,
        200,
    ]


async def test_a_wrong_method_says_which_are_right(node: NodeProcess) -> None:
    answer = await tell(node, get("Connection: close", target=PATH).replace("GET", "PUT", 1).encode())
    assert b"\r\nAllow: GET, HEAD, POST, OPTIONS\r\n" in answer


async def test_delete_removes_a_snapshot_once(node: NodeProcess) -> None:
    target = "/v1/snapshot?subject=/http/removed"
    publish = post("Content-Length: 1", body="x", target="/v1/messages?subject=/http/removed")
    delete = get(target=target).replace("GET", "DELETE", 1)
    requests = [publish, get(target=target), delete, get(target=target), delete, get("Connection: close")]
    assert statuses(await tell(node, "".join(requests).encode())) == [201, 200, 201, 404, 404, 200]
