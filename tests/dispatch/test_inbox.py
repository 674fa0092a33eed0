"""One thread from end to end: POST, one receiver, the inbox, a connected client, and counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from godwit.client import Client
from godwit.dispatch.pure.subjects import inbox_subject
from tests.dispatch.conftest import Running, running

DEADLINE_S = 60
ANN = "/v1/receivers/user:42"
SUBJECT = "/$inbox/default/user:42"
HI = {"to": {"receiver": "user:42"}, "content": {"title": "hi", "data": {"n": 1}}}


async def wait_for(both: Running, name: str, state: str = "settled") -> Any:
    """The notification once it is in `state`."""
    async with asyncio.timeout(DEADLINE_S):
        while (answer := (await both.api("GET", f"/v1/notifications/{name}"))[1])["state"] != state:
            pass  # each answer is a turn of the loop
        return answer


async def test_a_notification_reaches_a_connected_client_and_is_counted(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        assert (await dispatch.api("PUT", ANN, {"locale": "de"}))[0] == 201
        token = await dispatch.make_token("user:42")
        async with Client(dispatch.node_url, token=token) as client:
            items, heads = client.subscribe(SUBJECT), client.subscribe(f"{SUBJECT}/head")
            first = await anext(aiter(heads))
            assert first.json() == {"head": first.json()["head"], "unread": 0, "unseen": 0}
            status, answer = await dispatch.api("PUT", "/v1/notifications/n1", HI)
            assert (status, answer) == (202, {"id": "n1", "state": "accepted"})
            item = (await anext(aiter(items))).json()
        epoch = first.json()["head"].split(".")[0]
        assert (item["at"], item["id"], item["flags"]) == (f"{epoch}.1", "n1", [])
        assert item["content"] == HI["content"] and (item["unread"], item["unseen"]) == (1, 1)
        settled = await wait_for(dispatch, "n1")
        assert settled["counts"] == {"inbox": {"sent": 1}} and settled["receivers"] == 1
        status, marked = await dispatch.api(
            "POST", "/v1/inbox/marks", {"mark": "read", "items": [item["at"], item["at"]]}, key=token
        )
        assert (status, marked["unread"], marked["unseen"]) == (200, 0, 0)
        assert (await wait_for(dispatch, "n1"))["counts"] == {"inbox": {"delivered": 1}}
        _, answer = await dispatch.api("GET", "/v1/notifications/n1/deliveries")
        assert [(row["receiver"], row["channel"], row["state"]) for row in answer["deliveries"]] == [
            ("user:42", "inbox", "delivered")
        ]


async def test_a_long_name_of_another_script_has_an_inbox_on_the_node(dispatch: Running) -> None:
    """Its path is longer than an identity may be: each character becomes nine."""
    name = 90 * "收"
    async with asyncio.timeout(DEADLINE_S):
        assert (await dispatch.api("PUT", f"/v1/receivers/{name}", {}))[0] == 201
        async with Client(dispatch.node_url, token=await dispatch.make_token(name)) as client:
            items = client.subscribe(inbox_subject("default", name))
            await items.joined()
            note = {"to": {"receiver": name}, "content": {"title": "hi"}}
            assert (await dispatch.api("PUT", "/v1/notifications/n1", note))[0] == 202
            assert (await anext(aiter(items))).json()["id"] == "n1"


async def test_items_wait_for_a_receiver_that_is_away_and_survive_a_restart(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async with running(tmp_path) as both:
            await both.api("PUT", ANN, {})
            for number in range(3):
                assert (await both.api("PUT", f"/v1/notifications/n{number}", HI))[0] == 202
                await wait_for(both, f"n{number}")
        async with running(tmp_path) as both:
            token = await both.make_token("user:42")
            _, answer = await both.api("GET", "/v1/inbox", key=token)
            assert [item["id"] for item in answer["items"]] == ["n0", "n1", "n2"] and answer["complete"]
            _, rest = await both.api("GET", f"/v1/inbox?after={answer['items'][0]['at']}", key=token)
            assert [item["id"] for item in rest["items"]] == ["n1", "n2"]
            _, page = await both.api("GET", f"/v1/inbox?before={answer['items'][2]['at']}&limit=1", key=token)
            assert [item["id"] for item in page["items"]] == ["n1"] and not page["complete"]


async def test_a_long_poll_is_answered_when_something_comes(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", ANN, {})
        token = await dispatch.make_token("user:42")
        _, start = await dispatch.api("GET", "/v1/inbox", key=token)
        poll = asyncio.create_task(dispatch.api("GET", f"/v1/inbox?after={start['head']}&wait=30", key=token))
        assert (await dispatch.api("POST", "/v1/notifications", HI))[0] == 202
        status, answer = await poll
        assert (status, len(answer["items"])) == (200, 1)


async def test_the_same_id_is_one_notification_and_another_body_is_refused(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", ANN, {})
        again = {"content": HI["content"], "to": HI["to"]}
        both = await asyncio.gather(
            *(dispatch.api("POST", "/v1/notifications", body, **{"Idempotency-Key": "k"}) for body in (HI, again))
        )
        ids = {answer["id"] for _, answer in both}
        assert len(ids) == 1 and sorted(answer.get("repeat", False) for _, answer in both) == [False, True]
        other = {**HI, "content": {"title": "other"}}
        status, answer = await dispatch.api("POST", "/v1/notifications", other, **{"Idempotency-Key": "k"})
        assert (status, answer["code"], answer["accepted"]) == (409, 4307, False)
        await wait_for(dispatch, ids.pop())
        token = await dispatch.make_token("user:42")
        assert (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]["unread"] == 1
