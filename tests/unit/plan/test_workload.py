"""godwit.plan.workload: a file and flags become a workload; unknown or invalid values are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.config.key_lines import find_key_lines
from godwit.errors import ConfigInvalid
from godwit.plan.workload import Budget, Workload, read_workload


def test_nothing_said_is_the_default() -> None:
    assert read_workload({}, {}) == (Workload(), Budget())


def test_flags_stand_above_the_file() -> None:
    document = {"workload": {"connections": 5_000, "messages_per_second": 3}, "machine": {"cores": 4}}
    workload, budget = read_workload(document, {"connections": 7_000, "subjects": None, "memory_mb": 100})
    assert (workload.connections, workload.messages_per_second, workload.subjects) == (7_000, 3.0, 100)
    assert (budget.cores, budget.memory_mb) == (4, 100)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"workload": {"conections": 1}}, "did you mean connections"),
        ({"teapot": {}}, "is not a table"),
        ({"workload": {"connections": 0}}, "must be 1 to"),
        ({"workload": {"connections": 1.5}}, "whole number"),
        ({"workload": {"messages_per_second": "many"}}, "must be a number"),
        ({"workload": {"tls": 1}}, "true or false"),
        ({"workload": 3}, "must be a table"),
        ({"workload": {"connections": 10, "fan_out": 11}}, "must not exceed the connections"),
    ],
)
def test_what_cannot_be_is_refused_by_name(document: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigInvalid, match=said):
        read_workload(document, {})


def test_a_refusal_names_the_line_of_the_file_or_the_flag() -> None:
    text = "[workload]\nsubjects = 2\nconections = 1\n"
    with pytest.raises(
        ConfigInvalid, match=r"conections \(from file w\.toml:3\): 1 is not known; did you mean connections"
    ):
        read_workload({"workload": {"subjects": 2, "conections": 1}}, {}, find_key_lines("w.toml", text))
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "subjects"):
        read_workload({"workload": {"subjects": 2}}, {"subjects": 0}, find_key_lines("w.toml", text))


def test_receivers_and_subscriptions_follow_from_each_other() -> None:
    workload = Workload(connections=1_000, subjects=10)
    assert (workload.receivers, workload.subscriptions) == (100.0, 1.0)
    assert Workload(connections=1_000, subjects=10, fan_out=500).subscriptions == 5.0
