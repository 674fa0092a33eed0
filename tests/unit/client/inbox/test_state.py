"""A client knows of an inbox what protocol/vectors/inbox.json says, after each step."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from godwit.client.inbox.state import NEWEST, Filter, InboxHead, InboxItem, InboxPage, InboxState, Verdict
from tests.architecture.source import ROOT

CASES = json.loads((ROOT / "protocol/vectors/inbox.json").read_text())["cases"]


def take(state: InboxState, step: dict[str, Any]) -> Verdict:
    if "live" in step:
        return state.take_live(msgspec.convert(step["live"], InboxItem))
    if "head" in step:
        return state.take_head(msgspec.convert(step["head"], InboxHead))
    if "changes" in step:
        return state.take_changes(msgspec.convert(step["changes"], InboxPage))
    before = step.get("before", state.before(step["filter"]) or "")
    return state.take_older(msgspec.convert(step["older"], InboxPage), step["filter"], before)


def show(state: InboxState, what: str) -> object:
    lists: dict[str, Filter] = {"active": "active", "unread_list": "unread", "archived": "archived"}
    if what in lists:
        return [item.id for item in state.list_items(lists[what])]
    if what == "known":
        return None if state.known is None else str(state.known)
    return getattr(state, what)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_inbox_is_what_the_table_says(case: dict[str, Any]) -> None:
    state = InboxState(case["items_max"])
    for step in case["steps"]:
        assert take(state, step) == step["is"], step
        shows = dict(step.get("shows", {}))
        before = shows.pop("before", {})
        assert {what: show(state, what) for what in shows} == shows
        assert {shown: state.before(shown) for shown in before} == before


def test_what_changed_is_listed_in_the_order_of_its_changes() -> None:
    state = InboxState(10)
    items = [InboxItem(f"1.{seq}", f"1.{seq}", name, 2, 2) for seq, name in ((2, "b"), (1, "a"))]
    state.take_older(InboxPage("1.2", 2, 2, True, tuple(items)), "active", NEWEST)
    state.take_live(InboxItem("1.3", "1.1", "a", 1, 1, ("read",)))
    assert [item.id for item in state.changed_after(0)] == ["b", "a"]
    assert [item.at for item in state.changed_after(2)] == ["1.3"]
