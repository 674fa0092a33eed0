"""MQTT clients with tiny buffers that read a little now and then, are cut off and resume their sessions. What they receive is compared with
what was published: QoS 2 once, QoS 1 each in order (duplicates are marked), QoS 0 all that `$godwit/gaps` does not report."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.trials.mqtt import Device, Readable
from tests.trials.slow import History
from tests.trials.slow_connection import open_slowly

GAPS = "$godwit/gaps"


@dataclass(kw_only=True)
class SlowDevice(Device):
    """One session of one filter, after that of the gaps. At QoS 0 it has none, and begins with the retained message again."""

    history: History
    is_slow: bool = True
    lasts: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """What came at QoS 1 and 2, by subject, without marked repeats."""
    skips: list[tuple[int, str, int, int]] = field(default_factory=list)
    """At QoS 0: within this connection, of this subject, from the one number to the other."""
    gaps: list[tuple[int, str, int, int]] = field(default_factory=list)

    async def _open(self) -> Readable:
        stream = await open_slowly(self.address, self.random, lambda: self.is_slow)
        self._writer = stream
        if not self.qos:
            self.is_known, self.lasts = False, {}
        return stream

    def _note(self, first: int, topic: str, payload: bytes) -> None:
        self.history.moved.set()
        subject, number = "/" + topic, json.loads(payload)["n"]
        last = self.lasts.get(subject, 0)
        if number > last:
            self.lasts[subject] = number
            self.numbers.setdefault(subject, []).append(number)
        elif self.qos == 2 or not first & 8:
            self.faults.append(f"{self.name}: {subject} had {last} and was sent {number} again")

    def _take_at_most_once(self, first: int, topic: str, payload: bytes) -> None:
        self.history.moved.set()
        said = json.loads(payload)
        if topic == GAPS:
            self._take_gap(said)
            return
        subject, number = "/" + topic, said["n"]
        last = self.lasts.get(subject)
        if self.qos:
            self.faults.append(f"{self.name}: {subject} {number} came at QoS 0")
        elif last is not None and number <= last:
            self.faults.append(f"{self.name}: {subject} had {last} and was sent {number} again")
        elif last is not None:
            self.skips.append((self.connections, subject, last, number))
        self.lasts[subject] = number

    def _take_gap(self, said: dict[str, str]) -> None:
        if self.qos or "gap" not in said:
            self.faults.append(f"{self.name}: it received {said}")
        else:
            after, at = (int(said[key].partition(".")[2]) for key in ("after", "at"))
            self.gaps.append((self.connections, said["gap"], after, at))

    def count_behind(self) -> int:
        """Subjects of which it has not the last message."""
        contents, heads = self.history.contents, self.history.heads
        return sum(
            contents[subject][heads[subject]] > self.lasts.get(subject, 0) for subject in contents if self._has(subject)
        )

    def _has(self, subject: str) -> bool:
        mine = "/" + self.filters[-1]
        return subject == mine or (mine.endswith("#") and subject.startswith(mine[:-1]))

    def check(self) -> list[str]:
        """Compares what came with what was published, once it is complete."""
        for subject, numbers in self.numbers.items():
            published = [number for _, number in sorted(self.history.contents[subject].items()) if number >= numbers[0]]
            if numbers != published:
                lost = sorted(set(published) - set(numbers))
                self.faults.append(f"{self.name}: {subject} lost {len(lost)} of {len(published)}: {lost[:10]}")
        sequences = {
            subject: {number: sequence for sequence, number in contents.items()}
            for subject, contents in self.history.contents.items()
        }
        for connection, subject, last, number in self.skips:
            before, after = sequences[subject][last], sequences[subject][number]
            reported = {(c, s, a, b) for c, s, a, b in self.gaps if (c, s) == (connection, subject)}
            missing = set(range(before + 1, after)) - {one for *_, a, b in reported for one in range(a + 1, b + 1)}
            if missing:
                self.faults.append(f"{self.name}: {subject} misses {sorted(missing)[:10]} and received no gap")
        return self.faults
