"""A client processes received frames as protocol/vectors/recovery.json requires, and has the position given there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from godwit.client.codec.json import JsonEncoding
from godwit.client.codec.push import Epochs
from godwit.client.position_tracker import PositionTracker, Verdict
from godwit.client.resume_point import ResumePoint
from godwit.model import Gap, Message, Position

CASES = json.loads((Path(__file__).parents[2] / "protocol/vectors/recovery.json").read_text())["client"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_a_client_stands_where_the_table_says(case: dict[str, Any]) -> None:
    stand = case["resume_point"]
    tracker = PositionTracker("/s", False, 10, ResumePoint({"/s": Position.parse(stand)}) if stand else None)
    for step in case["steps"]:
        comes = {"time": 0, "content": None, **step["comes"]} if "message" in step["comes"] else step["comes"]
        [push] = JsonEncoding().decode(json.dumps(comes))
        if step["is"] == "order":
            assert isinstance(push, Epochs)
            tracker.order(push.subject, push.order)
        elif step["is"] == "repeated gap":
            assert isinstance(push, Gap)
            assert tracker.refine(push) is None
        elif step["is"] == "gap":
            assert isinstance(push, Gap)
            tracker.place(push)
        else:
            assert isinstance(push, Message)
            assert tracker.judge(push) is Verdict(step["is"])
        assert str(tracker.position("/s")) == step["stands"]
