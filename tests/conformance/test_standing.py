"""A client makes of what comes what protocol/vectors/recovery.json says, and stands where it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from godwit.client.stand import Stand
from godwit.client.standing import Standing, Verdict
from godwit.client.wire.json import JsonWire
from godwit.model import Gap, Message, Position

CASES = json.loads((Path(__file__).parents[2] / "protocol/vectors/recovery.json").read_text())["client"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_a_client_stands_where_the_table_says(case: dict[str, Any]) -> None:
    stand = case["stand"]
    standing = Standing("/s", False, 10, Stand({"/s": Position.parse(stand)}) if stand else None)
    for step in case["steps"]:
        comes = {"time": 0, "content": None, **step["comes"]} if "message" in step["comes"] else step["comes"]
        [told] = JsonWire().decode(json.dumps(comes))
        if step["is"] == "gap":
            assert isinstance(told, Gap)
            standing.place(told)
        else:
            assert isinstance(told, Message)
            assert standing.judge(told) is Verdict(step["is"])
        assert str(standing.position("/s")) == step["stands"]
