"""nchan in nginx: WebSocket subscribers that reconnect with the id of their last message.

Channels keep their last messages, so a subscriber that reconnects in time misses nothing. One that reconnects too late
receives the remaining messages without a report, which is a violation. It has no wildcards. Needs the Debian packages
nginx and libnginx-mod-nchan.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection
from websockets.typing import Subprotocol

from ..judge.context import CheckContext
from ..judge.finding import Guarantee
from ..plan import Kind, Plan
from ..timing import Clock
from .broker import BrokerMissing, Program, Publishing, Subscriber, SubscriberSetup
from .post import PostPublisher, channel_of
from .websocket import WebsocketSubscriber

MODULE = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
GUARANTEES = frozenset({Guarantee.NO_LOSS, Guarantee.NO_REPEAT, Guarantee.ORDER, Guarantee.CONTENT, Guarantee.ALIVE})
NOTES = ["nchan: wildcards, gaps, merged values and restarts are not judged; it keeps 1,000 messages per channel"]


class NchanBroker(Program):
    """One nginx process with one worker."""

    name = "nchan"
    kinds = frozenset({Kind.SUBJECT})

    def __init__(self) -> None:
        super().__init__(NOTES, GUARANTEES)
        if shutil.which("nginx") is None or not MODULE.exists():
            raise BrokerMissing("nginx with the nchan module is not installed")

    async def start(self, directory: Path) -> None:
        file = _write_settings(directory, self.address[1])
        await self._launch("nginx", "-c", str(file))

    def subscriber(self, setup: SubscriberSetup) -> Subscriber:
        return NchanSubscriber(setup)

    def publishers(self, plan: Plan, ports: list[int], context: CheckContext, clock: Clock) -> list[Publishing]:
        return [NchanPublisher(plan, context, clock, self.address)]


class NchanSubscriber(WebsocketSubscriber):
    """Each message has an id, and a reconnecting subscriber sends the last one."""

    subprotocols = (Subprotocol("ws+meta.nchan"),)
    _last_id = ""

    @property
    def path(self) -> str:
        channel = f"/sub/{channel_of(self.mine.selector)}"
        return f"{channel}?last={quote(self._last_id)}" if self._last_id else channel

    async def take(self, socket: ClientConnection, received: str | bytes) -> None:
        meta, _, content = (received.encode() if isinstance(received, str) else received).partition(b"\n\n")
        for line in meta.split(b"\n"):
            if line.startswith(b"id: "):
                self._last_id = line[4:].decode()
        self.numbered.take(content)


class NchanPublisher(PostPublisher):
    """Posts the content unchanged."""

    def __init__(self, plan: Plan, context: CheckContext, clock: Clock, address: tuple[str, int]) -> None:
        super().__init__(plan, context, clock)
        self._url = f"http://{address[0]}:{address[1]}/pub/"

    def request(self, subject: str, content: bytes) -> tuple[str, dict[str, Any]]:
        return self._url + channel_of(subject), {"data": content}


def _write_settings(directory: Path, port: int) -> Path:
    """Write the default settings with this port and a message buffer."""
    directory.chmod(0o755)
    file = directory / "nginx.conf"
    file.write_text(
        f"load_module {MODULE};\ndaemon off;\nworker_processes 1;\npid {directory}/pid;\nerror_log {directory}/log error;\n"
        "events { worker_connections 4096; }\n"
        f"http {{ access_log off; client_body_temp_path {directory}/body; server {{ listen 127.0.0.1:{port};\n"
        "location ~ /sub/(\\w+)$ { nchan_subscriber websocket; nchan_channel_id $1;\n"
        '  nchan_subscriber_last_message_id "$arg_last"; nchan_subscriber_first_message newest; }\n'
        "location ~ /pub/(\\w+)$ { nchan_publisher http; nchan_channel_id $1; nchan_message_buffer_length 1000;\n"
        "  nchan_message_timeout 10m; client_max_body_size 1m; client_body_buffer_size 1m; }\n"
        "} }\n"
    )
    return file
