"""The client applies the events of protocol/vectors/streams.json: an event's `data` is an object of the JSON encoding, and its `id` is the
position after it. The Python client opens no event streams; the JavaScript client, the core and a node run the same scripts.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from godwit.client.codec.json import JsonEncoding
from godwit.client.codec.push import Marked, Received
from godwit.client.codec.reply import Reply
from godwit.client.position_tracker import PositionTracker, Verdict
from godwit.client.resume_point import ResumePoint
from godwit.model import Gap, Message, Outcome, Position
from godwit.subject import is_pattern

CASES = json.loads((Path(__file__).parents[2] / "protocol/vectors/streams.json").read_text())["cases"]
NAMES = {"s": "/v/1", "e": "7", "f": "8", "g": "9", "r": "a1"}
HOLE = re.compile(r"\$\{(\w*)\}")


def fill(text: str) -> str:
    """A script with every name bound: resume tokens count up by the digit in their name."""
    text = text.replace('"time":"${}"', '"time":1795250000000')
    return HOLE.sub(lambda hole: NAMES.get(hole[1], f"a1.{int(hole[1][1:] or 0) + 1}.1795250000000.0badcafe"), text)


def streams_of(lines: list[str]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The streams of a script: what each asks for, and the events that it hears."""
    streams: list[tuple[str, list[dict[str, Any]]]] = []
    for line in (fill(line) for line in lines if line.startswith("s ")):
        if line.startswith("s ? "):
            streams.append((line[4:], []))
        else:
            streams[-1][1].append(json.loads(line[4:]))
    return streams


def tell(event: dict[str, Any]) -> Received:
    [push] = JsonEncoding().decode(json.dumps(event["data"]))
    return push


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_an_event_says_what_a_frame_says_and_its_id_where_its_reader_stands(case: dict[str, Any]) -> None:
    for target, events in streams_of(case["lines"]):
        selectors = re.findall(r"subject=([^&@ ]+)", target)
        standings = {
            selector: PositionTracker(selector, is_pattern(selector), 100, ResumePoint()) for selector in selectors
        }
        for event in events:
            push = tell(event)
            match push:
                case Reply():
                    tracker = standings[event["data"]["subject"]]
                    tracker.joined(None if push.outcome is Outcome.RESYNC else push.position, push.count)
                case Message():
                    tracker = standings[event["data"].get("pattern", push.subject)]
                    assert tracker.judge(push) is Verdict.NEW
                case Gap():
                    tracker = standings[event["data"].get("pattern", push.subject)]
                    tracker.place(push)
                case Marked():
                    assert event["event"] == "resume_token" and event["id"]
                    continue
            if "id" in event and len(selectors) == 1 and not tracker.is_pattern:
                assert tracker.position(selectors[0]) == Position.parse(event["id"])
