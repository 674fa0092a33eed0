"""One run of a load in the generator's form: the number of clients and their steps. Pure values; the steps are declared in
loadgen/src/plan.rs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Figures = dict[str, float]
Steps = dict[str, dict[str, Any]]
"""A run's steps by name."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One run of a load, without the server's address."""

    subscribers: int
    subjects: int
    steps: list[dict[str, Any]]
    publishers: int = 0
    is_acked: bool = False
    keeps_places: bool = False
    threads: int = 1
    opening_max: int = 256
    content_bytes: int = 144
    seconds_max: float = 300.0
    is_last: bool = False
    """Nothing is measured after it in this process: connections end with the processes, not one by one."""
    shards: int = 0
    """The number of the node's shards; 0: the load's default."""

    def plan(self) -> dict[str, Any]:
        """The part of loadgen/src/plan.rs that the load decides."""
        return {name: getattr(self, name) for name in PLANNED}


PLANNED = (
    *("subscribers", "subjects", "publishers", "is_acked", "keeps_places", "threads", "opening_max"),
    *("content_bytes", "seconds_max", "is_last", "steps"),
)


def connect(name: str = "connect", **upto: int) -> dict[str, Any]:
    return {"do": "connect", "name": name, **upto}


def pause(seconds: float, name: str = "pause") -> dict[str, Any]:
    return {"do": "pause", "name": name, "seconds": seconds}


def publish(name: str, messages: int, **pace: float) -> dict[str, Any]:
    return {"do": "publish", "name": name, "messages": max(1, messages), **pace}


def steps_of(result: dict[str, Any]) -> Steps:
    """A result's steps by name."""
    return {step["name"]: step for step in result["steps"]}
