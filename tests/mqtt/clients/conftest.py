"""One node for all of them, with every door: TCP, TLS, WebSocket at /mqtt, and the latter over TLS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.authority import Authority
from tests.mqtt.conftest import serve

DEADLINE_S = 120


@dataclass(frozen=True)
class Doors:
    """The address of the MQTT listener, and the authority that a TLS client trusts."""

    mqtt: tuple[str, int]
    mqtt_tls: tuple[str, int]
    client: tuple[str, int]
    client_tls: tuple[str, int]
    ca_file: Path

    def environment(self) -> dict[str, str]:
        """For programs in other languages."""
        ports = {"MQTT": self.mqtt, "MQTT_TLS": self.mqtt_tls, "CLIENT": self.client, "CLIENT_TLS": self.client_tls}
        named = {f"GODWIT_{name}_PORT": str(address[1]) for name, address in ports.items()}
        return {**os.environ, **named, "GODWIT_CA_FILE": str(self.ca_file)}


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    chain, key = authority.issue("localhost", "127.0.0.1")
    with serve(
        f"tls.certificate_files={chain}",
        f"tls.key_files={key}",
        "mqtt.tls_address=127.0.0.1:0",
        "client.tls_address=127.0.0.1:0",
    ) as node:
        yield Doors(node["mqtt"], node["mqtt_tls"], node["client"], node["client_tls"], authority.file)


def find_program(name: str, how: str) -> str:
    """The path of a program that is not Godwit's; without it the test is left out by name, but never under CI."""
    path = shutil.which(name)
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(f"{name} is missing: {how}")
    if path is None:
        pytest.skip(f"{name} is missing: {how}")
    return path


def run_program(command: list[str], doors: Doors, folder: Path | None = None) -> str:
    """Its standard output; it must end well."""
    done = subprocess.run(
        command, cwd=folder, env=doors.environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
