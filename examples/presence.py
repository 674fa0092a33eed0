"""Presence, built on the audit interface: the clients in a room, as a retained message on /presence/ROOM.

    PYTHONPATH=examples godwit serve --set audit.plugins=presence:Presence

A client is in a room while it subscribes to /rooms/ROOM. A new subscriber of /presence/ROOM gets the list as its
snapshot.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from godwit.audit import AccessEvent, Audit, Event

ROOMS = "/rooms/"


class Presence(Audit):
    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # connection → identity
        self.rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)  # room → identities, by their connections
        self.joined: defaultdict[int, set[str]] = defaultdict(set)  # connection → rooms

    async def take(self, events: Sequence[Event]) -> None:
        changed: set[str] = set()
        for event in events:
            if isinstance(event, AccessEvent):
                changed |= self.note(event)
        for room in changed:  # once a batch, however many came and went
            self.node.publish(f"/presence/{room}", {"here": sorted(+self.rooms[room])})

    def note(self, event: AccessEvent) -> set[str]:
        room = event.selector.removeprefix(ROOMS) if event.selector.startswith(ROOMS) else ""
        if event.what == "connected":
            self.names[event.connection] = event.identity or f"guest-{event.connection:x}"
        elif event.what == "subscribed" and room and room not in self.joined[event.connection]:
            self.joined[event.connection].add(room)
            self.rooms[room][self.names.get(event.connection, "")] += 1
            return {room}
        elif event.what == "unsubscribed" and room in self.joined[event.connection]:
            return self.leave(event.connection, {room})
        elif event.what == "disconnected":
            left = self.leave(event.connection, self.joined.pop(event.connection, set()))
            self.names.pop(event.connection, None)
            return left
        return set()

    def leave(self, connection: int, rooms: set[str]) -> set[str]:
        for room in rooms:
            self.rooms[room][self.names.get(connection, "")] -= 1
        self.joined[connection] -= rooms
        return rooms
