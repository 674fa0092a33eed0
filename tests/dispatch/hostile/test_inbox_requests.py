"""Hostile requests about inboxes, recipients and times: a code each, nothing lost, and nobody else's data. Numbers are the design's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import FAST

DEADLINE_S = 60
HI = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"to": {"receivers": [f"r{number}" for number in range(10_001)]}}, "/to/receivers"),  # 7
        ({"expires_s": 0}, "/expires_s"),  # 10
        ({"expires_s": 2**63}, "/expires_s"),  # 10
        ({"expires_s": 1.5}, "/expires_s"),  # 10
        ({"to": {"address": {"channel": "inbox", "value": "x"}}}, "/to/address/channel"),
        ({"policy": {"first": []}}, "/policy/first"),
        ({"policy": {"first": ["inbox", "inbox"]}}, "/policy"),
        ({"policy": {"first": ["inbox"], "escalate": [{"channel": "email"}]}}, "/policy"),
        ({"policy": {"escalate": [{"channel": "pigeon"}]}}, "/policy/escalate/0/channel"),
        ({"collapse_key": ""}, "/collapse_key"),
        ({"content": {"title": ""}}, "/content"),
        ({"content": {"title": "x", "actions": [{"id": "a", "label": "A"}] * 2}}, "/content/actions"),
        ({"metadata": {"a" * 129: "x"}}, "/metadata"),
        ({"priority": "urgent"}, "/priority"),
        ({"to": {"receiver": {"id": "bob", "zone": "../../etc/passwd"}}}, "/to/receiver/zone"),
        ({"to": {"receiver": {"id": "bob", "quiet": {"start": "25:00", "end": "07:00"}}}}, "/to/receiver/quiet/start"),
    ],
)
async def test_a_field_that_cannot_be_is_named(dispatch: Running, change: dict[str, Any], pointer: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        status, answer = await dispatch.api("PUT", "/v1/notifications/n1", {**HI, **change})
        assert (status, answer["code"], answer["pointer"], answer["accepted"]) == (422, 4300, pointer, False), answer
        assert (await dispatch.api("GET", "/v1/notifications/n1"))[0] == 404, "nothing was accepted"
        assert (await dispatch.api("GET", "/v1/receivers/bob"))[0] == 404


async def test_a_name_that_stands_twice_gets_one_delivery(tmp_path: Path, runtime: Path) -> None:  # 8
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        note = {"to": {"receivers": ["ann", "ann", "nobody", "ann"]}, "content": {"title": "x"}}
        _, answer = await both.api("PUT", "/v1/notifications/n1", note)
        assert answer["unknown"] == ["nobody"]
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"sent": 1}}


async def test_a_token_reads_and_marks_its_own_inbox_only(dispatch: Running) -> None:  # 46, 47
    async with asyncio.timeout(DEADLINE_S):
        for name in ("ann", "bob"):
            await dispatch.api("PUT", f"/v1/notifications/{name}", {**HI, "to": {"receiver": {"id": name}}})
            await wait_for(dispatch, name)
        ann, bob = await dispatch.make_token("ann"), await dispatch.make_token("bob")
        _, answer = await dispatch.api("GET", "/v1/inbox", key=bob)
        foreign = answer["items"][0]["at"]
        await dispatch.api("POST", "/v1/inbox/marks", {"mark": "read", "items": [foreign]}, key=ann)
        assert (await dispatch.api("GET", "/v1/inbox/counts", key=bob))[1]["unread"] == 1
        epoch = (await dispatch.api("GET", "/v1/inbox/counts", key=ann))[1]["head"].split(".")[0]
        beyond = {"mark": "delivered", "up_to": f"{epoch}.999999999999"}
        assert (await dispatch.api("POST", "/v1/inbox/marks", beyond, key=ann))[0] == 200
        status, _ = await dispatch.api("PUT", "/v1/notifications/late", HI)
        assert status == 202 and (await wait_for(dispatch, "late"))["counts"] == {"inbox": {"sent": 1}}
        for wrong in ("1", "a.b", "-1.2", f"{epoch}.{'9' * 30}"):
            marked = await dispatch.api("POST", "/v1/inbox/marks", {"mark": "read", "items": [wrong]}, key=ann)
            assert marked[1]["code"] == 4300
        for token in (ann[:-8] + "AAAAAAAA", "", dispatch.key):
            assert (await dispatch.api("GET", "/v1/inbox", key=token))[1]["code"] == 4312


async def test_a_flood_of_marks_changes_an_item_once(dispatch: Running) -> None:  # 48
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/notifications/n1", HI)
        await wait_for(dispatch, "n1")
        token = await dispatch.make_token("ann")
        head = (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]["head"]
        mark = {"mark": "read", "up_to": head}
        answers = await asyncio.gather(*(dispatch.api("POST", "/v1/inbox/marks", mark, key=token) for _ in range(200)))
        assert {status for status, _ in answers} == {200} and sum(len(answer["items"]) for _, answer in answers) == 1
        counts = (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]
        assert (counts["unread"], counts["unseen"]) == (0, 0)
        many = {"mark": "read", "items": ["1.1"] * 1_001}
        assert (await dispatch.api("POST", "/v1/inbox/marks", many, key=token))[1]["code"] == 4300
