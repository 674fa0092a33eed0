"""Audits: what happened on a node, told to a user's extension in batches (events.py says what, audit.py how).

The node uses runner.py; neither delivery nor a publisher's answer ever waits for an audit.
"""

from .audit import Audit, NodeFace
from .events import AccessEvent, CacheEvent, Event, LostEvent, MessageEvent, StatisticsEvent

__all__ = ["AccessEvent", "Audit", "CacheEvent", "Event", "LostEvent", "MessageEvent", "NodeFace", "StatisticsEvent"]
