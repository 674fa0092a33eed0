"""A stand: where a subscription can be taken up again, by this client or by a later one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import PositionInvalid
from ..model import Position


@dataclass(frozen=True, slots=True)
class Stand:
    """Positions by subject, and for a pattern the mark up to which it has seen everything."""

    after: Mapping[str, Position] = field(default_factory=dict)
    since: str | None = None
    node: str | None = None  # which gave the mark

    def for_node(self, node: str | None) -> Stand:
        """What to ask of this node: to the one that gave it, a mark says everything; another is told the positions too."""
        return Stand({}, self.since) if self.since is not None and self.node == node else self

    def __bool__(self) -> bool:
        return bool(self.after) or self.since is not None

    def to_json(self) -> dict[str, object]:
        """The saved form: `{"after": {"/a/b": "7.42"}, "since": MARK, "node": NAME}`, each only when there is one."""
        saved: dict[str, object] = {}
        if self.after:
            saved["after"] = {subject: str(position) for subject, position in self.after.items()}
        if self.since is not None:
            saved["since"] = self.since
        if self.node is not None:
            saved["node"] = self.node
        return saved

    @classmethod
    def from_json(cls, saved: object) -> Stand:
        """Read the saved form back; raises PositionInvalid when it is none."""
        if isinstance(saved, Mapping):
            after, since, node = saved.get("after", {}), saved.get("since"), saved.get("node")
            if isinstance(after, Mapping) and isinstance(since, str | None) and isinstance(node, str | None):
                return cls({str(subject): Position.parse(str(text)) for subject, text in after.items()}, since, node)
        raise PositionInvalid(repr(saved))
