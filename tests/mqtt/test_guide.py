"""The device of docs/guides/mqtt.md runs unchanged, and so do its shell commands if their tools are installed."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.mqtt.clients.conftest import find_program
from tests.mqtt.conftest import serve
from tests.mqtt.packets import Peer, connect, publish

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guides/mqtt.md").read_text("utf-8")


async def test_the_guides_device_tells_its_state_and_does_as_it_is_told() -> None:
    [program] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    scope: dict[str, Any] = {"__name__": "boiler"}
    exec(compile(program, "docs/guides/mqtt.md", "exec"), scope)
    with serve() as node, Peer(node.mqtt) as watcher:
        watcher.join(connect("watcher"))
        watcher.granted(("boilers/+/state", 1), ("boilers/+/done", 1))
        async with asyncio.timeout(30):
            boiler = asyncio.create_task(scope["serve_boiler"](*node.mqtt))
            state = await asyncio.to_thread(watcher.message)
            assert (state.topic, state.payload, state.qos) == ("boilers/7/state", b"online", 1)
            watcher.send(publish("boilers/7/commands/heat", b"60", 1, 5))
            done = [await asyncio.to_thread(watcher.receive) for _ in range(2)]
            assert any(b"boilers/7/done" in raw and raw.endswith(b"heat b'60'") for raw in done)
            boiler.cancel()
            with pytest.raises(asyncio.CancelledError):
                await boiler


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


@pytest.mark.long
def test_the_readmes_commands_do_what_the_table_says() -> None:
    for name in ("mosquitto_pub", "mosquitto_sub"):
        find_program(name, "Debian, Ubuntu: apt install mosquitto-clients")
    [(listen, tell)] = re.findall(
        r"`(mosquitto_sub [^`]+)` and `(mosquitto_pub [^`]+)`", (ROOT / "README.md").read_text("utf-8")
    )
    with serve() as node:
        for command in (tell, f"{listen} -C 1"):  # it is retained: who listens later gets it too
            script = command.replace("mosquitto_pub", f"mosquitto_pub -p {node.mqtt[1]}")
            script = script.replace("mosquitto_sub", f"mosquitto_sub -p {node.mqtt[1]}")
            done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == 'rooms/hall {"celsius":22}'
