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

    def __bool__(self) -> bool:
        return bool(self.after) or self.since is not None

    def to_json(self) -> dict[str, object]:
        """The saved form: `{"after": {"/a/b": "7.42"}, "since": MARK}`, each only when there is one."""
        saved: dict[str, object] = {}
        if self.after:
            saved["after"] = {subject: str(position) for subject, position in self.after.items()}
        if self.since is not None:
            saved["since"] = self.since
        return saved

    @classmethod
    def from_json(cls, saved: object) -> Stand:
        """Read the saved form back; raises PositionInvalid when it is none."""
        if isinstance(saved, Mapping):
            after, since = saved.get("after", {}), saved.get("since")
            if isinstance(after, Mapping) and (since is None or isinstance(since, str)):
                return cls({str(subject): Position.parse(str(text)) for subject, text in after.items()}, since)
        raise PositionInvalid(repr(saved))
