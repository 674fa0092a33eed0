"""The workload and the machine's size, as an operator describes them.

Pure: from a table of a TOML file and from flags, checked, with every unknown key refused by name. Rates are of all
publishers together; `fan_out` is how many clients get one message.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..config.key_lines import KeyLines
from ..errors import ConfigInvalid


def number(default: float, sentence: str, minimum: float = 0.0, maximum: float = 1e12) -> Any:
    """A field of a workload with its bounds; an integer if the default is one."""
    return field(default=default, metadata={"sentence": sentence, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True, slots=True)
class Workload:
    """What clients and publishers do."""

    connections: int = number(10_000, "Clients connected at once.", 1, 100_000_000)
    subjects: int = number(100, "Subjects that messages are published on.", 1, 100_000_000)
    messages_per_second: float = number(100.0, "Messages published a second, on all subjects together.", 0.0, 1e9)
    fan_out: float = number(0.0, "Clients that receive each message; 0: connections / subjects.", 0.0, 1e8)
    message_bytes: int = number(144, "Content of one message.", 1, 67_108_864)
    conflate_ms: int = number(0, "Conflation window of every subscription; 0: every message is sent.", 0, 3_600_000)
    delay_ms_max: float = number(1_000.0, "How late a message may be when the node is busy.", 0.1, 3_600_000)
    messages_at_once: float = number(1.0, "Messages that reach the node in one write of a publisher.", 1.0, 1e6)
    away_seconds: float = number(
        5.0, "Seconds that all clients are disconnected before they reconnect at once.", 0.0, 86_400
    )
    tls: bool = field(default=False, metadata={"sentence": "Clients connect by TLS.", "minimum": 0, "maximum": 1})

    @property
    def receivers(self) -> float:
        """The number of clients that receive one message."""
        return self.fan_out or max(1.0, self.connections / self.subjects)

    @property
    def subscriptions(self) -> float:
        """The average number of subscriptions of a client, from receivers and subjects."""
        return self.receivers * self.subjects / self.connections

    @property
    def subject_rate(self) -> float:
        """Messages a second on one subject."""
        return self.messages_per_second / self.subjects


@dataclass(frozen=True, slots=True)
class Budget:
    """What the node may use; 0: what was measured here."""

    cores: int = number(0, "Cores of the node; 0: those of this machine.", 0, 64)
    memory_mb: int = number(0, "Memory for node and kernel, MB; 0: this machine's.", 0, 100_000_000)
    descriptors: int = number(0, "Open files a process may have; 0: this machine's limit.", 0, 1 << 30)
    network_mbit: int = number(0, "Capacity of the network, Mbit/s; 0: not considered.", 0, 10_000_000)


T = TypeVar("T", Workload, Budget)

TABLES: dict[str, type[Workload] | type[Budget]] = {"workload": Workload, "machine": Budget}


def read_workload(
    document: Mapping[str, Any], flags: Mapping[str, Any], key_lines: KeyLines | None = None
) -> tuple[Workload, Budget]:
    """The tables `workload` and `machine` of a TOML document, with flags (by field name; None: not given) that override
    them. Raises ConfigInvalid.
    """
    for name in document:
        if name not in TABLES:
            source = key_lines.tell(name) if key_lines else ""
            hint = "expected workload or machine"
            raise ConfigInvalid(name, document[name], "is not a table of a workload", hint=hint, source=source)
    workload = _read(Workload, document.get("workload", {}), flags, key_lines)
    if workload.receivers > workload.connections:
        raise ConfigInvalid("fan_out", workload.fan_out, f"must not exceed the connections ({workload.connections})")
    return workload, _read(Budget, document.get("machine", {}), flags, key_lines)


def _read(kind: type[T], table: Any, flags: Mapping[str, Any], key_lines: KeyLines | None) -> T:
    fields = {found.name: found for found in dataclasses.fields(kind)}
    name = next(name for name, known in TABLES.items() if known is kind)

    def tell(*path: str) -> str:
        return key_lines.tell(name, *path) if key_lines else ""

    if not isinstance(table, Mapping):
        raise ConfigInvalid(name, table, "must be a table", source=tell())
    for key in table:
        if key not in fields:
            nearest = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else ""
            raise ConfigInvalid(key, table[key], "is not known", hint=hint, source=tell(key))
    given = {**table, **{key: value for key, value in flags.items() if key in fields and value is not None}}
    sources = {key: "flag" if flags.get(key) is not None else tell(key) for key in given}
    return kind(**{key: _check(fields[key], value, sources[key]) for key, value in given.items()})


def _check(found: dataclasses.Field[Any], value: Any, source: str) -> Any:
    if isinstance(found.default, bool):
        if not isinstance(value, bool):
            raise ConfigInvalid(found.name, value, "must be true or false", source=source)
        return value
    is_whole = isinstance(found.default, int)
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        bound = "must be a whole number" if is_whole else "must be a number"
        raise ConfigInvalid(found.name, value, bound, source=source)
    least, most = found.metadata["minimum"], found.metadata["maximum"]
    if not least <= value <= most:
        raise ConfigInvalid(found.name, value, f"must be {least:g} to {most:,g}", source=source)
    return value if is_whole else float(value)
