"""What the admin port can read of the node. The server passes it in, so that nothing here imports a higher layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..config import Address, Config
from ..engine import Engine
from ..monitoring.health import Health
from ..monitoring.metric_specs import MetricSpec
from ..monitoring.monitor import Monitor


@dataclass(frozen=True, slots=True)
class NodeView:
    """One running node, read-only. `describe` returns name, version, uptime and so on; `describe_troubles` the problems of
    extensions; `count` the counters kept in Python; `read_config` the current configuration, which a reload replaces.
    """

    engine: Engine
    health: Health
    client: Address
    driver: str
    shards: int
    read_config: Callable[[], Config]
    describe: Callable[[], dict[str, Any]]
    describe_troubles: Callable[[], dict[str, str]]
    count: Callable[[], Mapping[MetricSpec, float]]
    monitor: Monitor
    read_refusals: Callable[[], list[dict[str, Any]]]
