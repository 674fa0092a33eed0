"""Drivers, one for each broker that can be verified, with one interface. The same checkers judge all of them."""

from __future__ import annotations

from collections.abc import Callable

from .broker import Broker, BrokerMissing
from .centrifugo import CentrifugoBroker
from .godwit import GodwitBroker
from .mosquitto import MosquittoBroker
from .nats import NatsBroker
from .nchan import NchanBroker

OTHERS: dict[str, Callable[[], Broker]] = {
    "mosquitto": MosquittoBroker,
    "nats": NatsBroker,
    "nchan": NchanBroker,
    "centrifugo": CentrifugoBroker,
}
"""Name → driver of every broker except Godwit."""

__all__ = ["OTHERS", "Broker", "BrokerMissing", "GodwitBroker"]
