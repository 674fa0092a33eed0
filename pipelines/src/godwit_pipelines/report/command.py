"""`godwit-pipelines report`: writes the page, and on request its data."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config import find_lake
from ..settings import Config
from .document import build_document
from .page import build_page, hour_of


def write_report(config: Config, page: Path, data: Path | None, hours: float) -> str:
    """Write the files; returns the line to print. Raises TableMissing if the lake does not exist."""
    document = build_document(find_lake(config), datetime.now(UTC), hours)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(build_page(document), encoding="utf-8")
    if data is not None:
        data.write_text(json.dumps(document, default=str, separators=(",", ":")) + "\n", encoding="utf-8")
    return f"{_state(document, hours)}: {page.resolve().as_uri()}"


def _state(document: dict[str, Any], hours: float) -> str:
    if document["audit"]["state"] == "none" and document["audited"]:
        return f"nothing of the last {hours:g} hours was audited; the last audited hour is {hour_of(document['audited'])}, see --hours"
    states = {"none": "nothing audited yet", "broken": "BROKEN", "unproven": "UNPROVEN"}
    return states.get(document["audit"]["state"], "PROVEN")


def open_page(page: Path) -> None:
    """Open the page in a browser if there is a desktop. Without one a browser would use the terminal, or fail."""
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(page.resolve().as_uri())
