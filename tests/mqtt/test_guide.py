"""The device of docs/guides/mqtt.md is run as it stands, and its shell commands where their tools are here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.mqtt.clients.conftest import find_program
from tests.mqtt.conftest import serve
from tests.mqtt.packets import Peer, connect, publish

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/mqtt.md").read_text("utf-8")


def test_the_guides_device_tells_its_state_and_does_as_it_is_told() -> None:
    [program] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    with serve() as node, Peer(node.mqtt) as watcher:
        watcher.join(connect("watcher"))
        watcher.granted(("boilers/+/state", 1), ("boilers/+/done", 1))
        scope: dict[str, Any] = {}
        exec(compile(program.replace("1883", str(node.mqtt[1])), "docs/guides/mqtt.md", "exec"), scope)
        try:
            state = watcher.message()
            assert (state.topic, state.payload, state.qos) == ("boilers/7/state", b"online", 1)
            watcher.send(publish("boilers/7/commands/heat", b"60", 1, 5))
            done = [watcher.receive(), watcher.receive()]
            assert any(b"boilers/7/done" in raw and raw.endswith(b"heat 60") for raw in done)
            scope["device"].loop_stop()
            scope["device"].socket().close()
            assert watcher.message().payload == b"offline"
        finally:
            scope["device"].loop_stop()


@pytest.mark.long
def test_the_guides_commands_print_what_it_says() -> None:
    how = "Debian, Ubuntu: apt install mosquitto-clients curl"
    for name in ("mosquitto_pub", "mosquitto_sub", "curl"):
        find_program(name, how)
    [(commands, expected)] = re.findall(r"```sh\n(.*?)```\n```out\n(.*?)```", GUIDE, re.DOTALL)
    with serve() as node:
        script = commands.replace("mosquitto_pub", f"mosquitto_pub -p {node.mqtt[1]}")
        script = script.replace("mosquitto_sub", f"mosquitto_sub -p {node.mqtt[1]}")
        script = script.replace("127.0.0.1:8800", f"127.0.0.1:{node['client'][1]}")
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == expected.strip()
