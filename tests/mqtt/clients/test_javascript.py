"""MQTT.js, in a Node of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mqtt.clients.conftest import Doors, find_program, run_program

FOLDER = Path(__file__).parent / "javascript"


@pytest.mark.long
def test_mqtt_js_finds_what_its_users_expect(doors: Doors) -> None:
    npm = find_program("npm", "it comes with Node from nodejs.org")
    run_program([npm, "ci", "--silent", "--no-progress"], doors, FOLDER)
    steps = run_program([find_program("node", "nodejs.org"), "ordinary.mjs"], doors, FOLDER).splitlines()
    assert steps[-4:] == ["session", "will", "request, response, retained", "shared"] and len(steps) == 12
