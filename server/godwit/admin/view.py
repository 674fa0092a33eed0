"""What the admin port may see of the node: given by the server, so that nothing here reaches upwards."""

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
    """One running node, read only.

    `describe` gives what does not come from the engine (name, version, uptime…), `describe_troubles` what is wrong
    with extensions, `count` what Python counts itself, and
    `read_config` the configuration in force, which a reload replaces.
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
    limits: Mapping[str, int]
    read_refusals: Callable[[], list[dict[str, Any]]]
