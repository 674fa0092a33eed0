"""A resume point: where this client, or a later one, can continue a subscription."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from ..errors import PositionInvalid
from ..model import Position

ASKED_MAX = 4_000  # positions in one question; the server takes 10,000
ASKED_CHARACTERS_MAX = 200_000  # of all their subjects; the server takes a megabyte, however they are written


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """What a client saves for a subscription: positions by subject, and for a pattern the resume token that it has reached."""

    after: Mapping[str, Position] = field(default_factory=dict)
    since: str | None = None
    node: str | None = None  # which gave the resume token
    recent: int = 0  # how many positions, the last of the map, are after the resume token
    is_whole: bool = True  # False: positions that only the resume token knows were forgotten

    @property
    def beyond_resume_token(self) -> dict[str, Position]:
        """The positions beyond the resume token."""
        return dict(islice(self.after.items(), len(self.after) - self.recent, None))

    def for_node(self, node: str | None) -> ResumePoint:
        """The resume point to send to this node. The node that gave the resume token gets the token and the positions after
        it: without these it would repeat messages, or no longer have them. Another node gets all positions, or the resume
        token if some were dropped: it then answers with a gap. If the node that gave the token is unknown, both are sent.
        """
        if self.since is None:
            return self
        is_its_own = self.node == node
        places = self.beyond_resume_token if is_its_own and self.node is not None else self.after
        if _is_too_much(places):
            return ResumePoint({}, self.since)
        if is_its_own or self.node is None:
            return ResumePoint(places, self.since)
        return ResumePoint(places) if self.is_whole and places else ResumePoint({}, self.since)

    @property
    def can_be_asked(self) -> bool:
        """False if there are more positions than the server accepts at once, and no resume token in their place."""
        return self.since is not None or not _is_too_much(self.after)

    def __bool__(self) -> bool:
        return bool(self.after) or self.since is not None

    def to_json(self) -> dict[str, object]:
        """The saved form: `{"after": {"/a/b": "7.42"}, "since": RESUME_TOKEN, "node": NAME, "recent": 1}`. Members without a value are
        left out.
        """
        saved: dict[str, object] = {}
        if self.after:
            saved["after"] = {subject: str(position) for subject, position in self.after.items()}
        if self.since is not None:
            saved["since"] = self.since
        if self.node is not None:
            saved["node"] = self.node
        if self.recent:
            saved["recent"] = self.recent
        if not self.is_whole:
            saved["whole"] = False
        return saved

    @classmethod
    def from_json(cls, saved: object) -> ResumePoint:
        """Read the saved form. Raises PositionInvalid if it is not one."""
        if isinstance(saved, Mapping):
            after, since, node = saved.get("after", {}), saved.get("since"), saved.get("node")
            if isinstance(after, Mapping) and isinstance(since, str | None) and isinstance(node, str | None):
                places = {str(subject): Position.parse(str(text)) for subject, text in after.items()}
                recent = saved.get("recent")
                beyond = min(max(0, recent), len(places)) if isinstance(recent, int) else 0
                return cls(places, since, node, beyond, saved.get("whole") is not False)
        raise PositionInvalid(repr(saved))


def _is_too_much(places: Mapping[str, Position]) -> bool:
    return len(places) > ASKED_MAX or sum(map(len, places)) > ASKED_CHARACTERS_MAX
