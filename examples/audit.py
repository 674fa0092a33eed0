"""An audit that writes one line of JSON for each event to a file, in batches.

    PYTHONPATH=examples godwit serve --set audit.plugins=audit:Ledger

Events arrive in batches, and an audit never slows a delivery. A slow audit loses the oldest events and receives their number
(LostEvent), or blocks publishers with `audit.overflow = "block"`.
"""

import asyncio
import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

from godwit.audit import AccessEvent, Audit, Event, LostEvent, MessageEvent


class Ledger(Audit):
    def __init__(self) -> None:
        self.file = Path(os.environ.get("LEDGER", "ledger.jsonl"))

    async def take(self, events: Sequence[Event]) -> None:
        kept = [event for event in events if isinstance(event, AccessEvent | MessageEvent | LostEvent)]
        lines = [json.dumps({"event": type(event).__name__, **dataclasses.asdict(event)}) + "\n" for event in kept]
        await asyncio.to_thread(self.append, "".join(lines))

    def append(self, text: str) -> None:
        with self.file.open("a", encoding="utf-8") as opened:
            opened.write(text)
