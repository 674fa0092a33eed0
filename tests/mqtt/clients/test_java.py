"""HiveMQ's client for Java, fetched by Maven, as a program of one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mqtt.clients.conftest import Doors, find_program, run_program

FOLDER = Path(__file__).parent / "java"


@pytest.mark.long
def test_hivemqs_client_finds_what_its_users_expect(doors: Doors, tmp_path: Path) -> None:
    maven = find_program("mvn", "Debian, Ubuntu: apt install maven")
    java = find_program("java", "Debian, Ubuntu: apt install default-jdk-headless")
    jars = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={tmp_path}"]
    run_program([maven, "-B", "-q", "-f", "pom.xml", *jars], doors, FOLDER)
    steps = run_program([java, "-cp", f"{tmp_path}/*", "Ordinary.java"], doors, FOLDER).splitlines()
    assert steps == ["tcp", "tls", "websocket", "session", "request, response, retained", "shared", "3.1.1"]
