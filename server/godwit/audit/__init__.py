"""Audits: pass what happens on a node to a user's extension, in batches (events.py has the events, audit.py the interface).

The node uses runner.py. No delivery ever waits for an audit.
"""

from .audit import Audit, NodeFace
from .events import AccessEvent, CacheEvent, Event, LostEvent, MessageEvent, StatisticsEvent

__all__ = ["AccessEvent", "Audit", "CacheEvent", "Event", "LostEvent", "MessageEvent", "NodeFace", "StatisticsEvent"]
