"""The journals of a simulated node: publishers and clients are simulated, and the rows that a node would have written are
written.

Owns a small world in which the truth is known: what is asked for (`lose`, `repeat`) goes wrong, and nothing else.
"""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.pipelines.journals import START, JournalWriter

Row = dict[str, Any]
FLUSH_S = 2.0
SUBJECTS = tuple(f"/rooms/{floor}/{room}" for floor in ("ground", "first") for room in ("hall", "kitchen", "office"))
PATTERNS = ("/rooms/**", "/rooms/ground/*", "/rooms/*/kitchen")


def matches(selector: str, subject: str) -> bool:
    parts, names = selector.split("/"), subject.split("/")
    if parts[-1] == "**":
        parts, names = parts[:-1], names[: len(parts) - 1]
    return len(parts) == len(names) and all(part in ("*", name) for part, name in zip(parts, names, strict=True))


class Play:
    """A node's life of `seconds`, cut by a crash at half of it."""

    def __init__(
        self,
        data: Path,
        *,
        seconds: int = 20,
        clients: int = 12,
        rate: int = 20,
        seed: int = 1,
        start: datetime = START,
    ) -> None:
        self.lots = random.Random(seed)
        self.seconds, self.clients, self.rate, self.start = seconds, clients, rate, start
        streams = ("messages", "access", "deliveries", "latency", "stats", "runs")
        self.rows: dict[str, list[Row]] = {stream: [] for stream in streams}
        self.writers = {stream: JournalWriter(data, stream, "played") for stream in streams}
        self.wrong: list[str] = []
        """What goes wrong, one range at a time: lose or repeat."""

    def write(self) -> None:
        """Play it, and write all of it, half of it sealed."""
        for life, run in enumerate(("0a", "0b")):
            self._live(run, life, life * self.seconds / 2, (life + 1) * self.seconds / 2)
        for stream, rows in self.rows.items():
            rows.sort(key=lambda row: row["time"])
            half = len(rows) // 2
            for part in (rows[:half], rows[half:]):
                if part:
                    self.writers[stream].write(part)
                if part is not rows and half:
                    self.writers[stream].seal()

    def at(self, second: float) -> datetime:
        return self.start + timedelta(microseconds=int(second * 1e6))

    def _arrivals(self, second: float) -> int:
        """The last arrival up to then: they go on across the crash."""
        return int(second * self.rate)

    def _live(self, run: str, life: int, begin: float, end: float) -> None:
        first = {"run": run, "tenant": ""}
        follows = {
            "follows_run": None if life == 0 else "0a",
            "follows_arrival": None if life == 0 else self._arrivals(begin),
            "follows_clean": None if life == 0 else False,
        }
        self.rows["runs"].append(
            {**first, "time": self.at(begin), "kind": "began", "epoch": life + 1, **follows, **_NO_LOSS}
        )
        published = self._publish(first, life + 1, begin, end)
        for number in range(1, self.clients + 1):
            selector = PATTERNS[number % 3] if number % 4 == 0 else SUBJECTS[number % len(SUBJECTS)]
            self._attend(
                first | {"tenant": f"tenant-{number % 3}"}, number, selector, published, begin, end, is_last=life == 1
            )
        for second in range(int(begin), int(end)):
            values = {
                "connections": self.clients,
                "messages_out_per_second": self.rate * 3.0,
                "messages_in_per_second": self.rate,
                "cpu": 0.02,
                "memory_bytes": 6e7,
            }
            for name, value in values.items():
                self.rows["stats"].append(
                    {
                        **first,
                        "time": self.at(second),
                        "metric": name,
                        "scope": "node",
                        "label": "",
                        "window_name": "now",
                        "covered_s": 0.0,
                        "value": float(value),
                        "max": None,
                        "mean": None,
                        "deviation": None,
                    }
                )

    def _publish(self, first: Row, epoch: int, begin: float, end: float) -> list[Row]:
        sequences: dict[str, int] = defaultdict(int)
        rows = []
        before = self._arrivals(begin)
        for arrival in range(before + 1, before + int((end - begin) * self.rate) + 1):
            subject = self.lots.choice(SUBJECTS)
            sequences[subject] += 1
            place = {"subject": subject, "epoch": epoch, "sequence": sequences[subject], "arrival": arrival}
            content = {
                "kind": "json",
                "content": b'{"celsius":%.1f}' % self.lots.gauss(20, 2),
                "publisher": "thermometer",
                "key": None,
                "flags": 5,
            }
            rows.append(
                {
                    **first,
                    "tenant": f"tenant-{len(subject) % 3}",
                    "time": self.at(begin + (arrival - before) / self.rate),
                    **place,
                    **content,
                    "reply_to": None,
                    "expiry_s": None,
                    "properties": None,
                }
            )
        self.rows["messages"] += rows
        return rows

    def _attend(
        self, first: Row, number: int, selector: str, published: list[Row], begin: float, end: float, *, is_last: bool
    ) -> None:
        came, left = begin + self.lots.uniform(0, (end - begin) / 4), end - self.lots.uniform(0.1, (end - begin) / 4)
        who = {"connection": number, "identity": f"user-{number}", "client": "played/1"}
        access = {
            **first,
            **who,
            "address": f"10.0.0.{number}:4000",
            "protocol": ("json", "binary", "mqtt")[number % 3],
            **_NO_ACCESS,
        }
        self.rows["access"].append({**access, "time": self.at(came), "kind": "connected"})
        self.rows["access"].append(
            {**access, "time": self.at(came), "kind": "subscribed", "selector": selector, "outcome": "live"}
        )
        mine = [
            row
            for row in published
            if matches(selector, row["subject"]) and self.at(came) < row["time"] < self.at(left)
        ]
        now = came + FLUSH_S
        while mine:
            part = [row for row in mine if row["time"] < self.at(min(now, left))]
            mine = mine[len(part) :]
            if part:
                self._flush({**first, **who}, selector, part, min(now, left))
            now += FLUSH_S
        if is_last or number % 2:  # the others' end was never written down: the node crashed
            lived = {"code": 1000, "duration_ms": int((left - came) * 1000)}
            self.rows["access"].append({**access, "time": self.at(left), "kind": "disconnected", **lived})

    def _flush(self, first: Row, selector: str, part: list[Row], at: float) -> None:
        is_pattern = "*" in selector
        missed = 2 if len(part) > 4 and self.lots.random() < 0.08 else 0
        wrong = self.wrong.pop() if self.wrong and len(part) > 3 and not missed else ""
        count = len(part) - missed + {"lose": -1, "repeat": 1}.get(wrong, 0)
        sequence, arrival = ([part[0][key], part[-1][key]] for key in ("sequence", "arrival"))
        ends: Row = {"epoch": None, "from_sequence": None, "to_sequence": None, "arrival_run": first["run"]}
        ends |= {"from_arrival": arrival[0], "to_arrival": arrival[1]}
        if not is_pattern:
            ends = {
                "epoch": part[0]["epoch"],
                "from_sequence": sequence[0],
                "to_sequence": sequence[1],
                "arrival_run": None,
            }
            ends |= {"from_arrival": None, "to_arrival": None}
        counts = {
            "count": count,
            "bytes": count * 90,
            "conflated": 0,
            "gaps": int(missed > 0),
            "gap_count": missed,
            "confirmed": False,
        }
        self.rows["deliveries"].append(
            {**first, "time": self.at(at), "selector": selector, "is_pattern": is_pattern, **ends, **counts}
        )
        buckets = [0] * 14
        for _ in range(count):
            buckets[min(13, max(0, int(self.lots.gauss(8, 1.6))))] += 1
        self.rows["latency"].append(
            {
                "run": first["run"],
                "tenant": first["tenant"],
                "time": self.at(at),
                "selector": selector,
                "period_ms": 2_000,
                "count": count,
                "buckets": buckets,
            }
        )


_NO_LOSS = {"stream": None, "from_arrival": None, "to_arrival": None, "count": None, "reason": None}
_NO_ACCESS = dict.fromkeys(("selector", "outcome", "resumed_from", "code", "reason", "duration_ms"))
