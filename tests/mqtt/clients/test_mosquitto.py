"""mosquitto_pub, mosquitto_sub and mosquitto_rr of the Debian package mosquitto-clients, as shell scripts use them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.mqtt.clients.conftest import DEADLINE_S, Doors, find_program, run_program

pytestmark = pytest.mark.long
HOW = "Debian, Ubuntu: apt install mosquitto-clients"


@pytest.fixture(scope="module")
def tools() -> dict[str, str]:
    return {name: find_program(f"mosquitto_{name}", HOW) for name in ("pub", "sub", "rr")}


def at(doors: Doors, *, tls: bool = False) -> list[str]:
    port = str((doors.mqtt_tls if tls else doors.mqtt)[1])
    return ["-h", "localhost", "-p", port, *(["--cafile", str(doors.ca_file)] if tls else [])]


@contextmanager
def listening(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A subscriber that has subscribed, by its own word (-d); into a pipe it would say so late."""
    with subprocess.Popen(
        [find_program("stdbuf", "coreutils"), "-oL", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "SUBACK" in line or "Subscribed" in line:
                break
        try:
            yield process
        finally:
            process.kill()


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    """What it printed, without what `-d` says of packets."""
    output, _ = process.communicate(timeout=DEADLINE_S)
    return [line for line in output.splitlines() if not line.startswith(("Client ", "Subscribed "))]


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_what_is_published_is_printed(doors: Doors, tools: dict[str, str], version: str, tls: bool) -> None:
    topic = f"mosquitto/{version}/{tls}"
    subscribe = [tools["sub"], *at(doors, tls=tls), "-V", version, "-d", "-q", "2", "-t", f"{topic}/#", "-C", "3", "-v"]
    with listening(subscribe) as process:
        for qos in "012":
            said = ["-V", version, "-q", qos, "-t", f"{topic}/{qos}", "-m", f"qos {qos}"]
            run_program([tools["pub"], *at(doors, tls=tls), *said], doors)
        assert lines_of(process) == [f"{topic}/{qos} qos {qos}" for qos in "012"]


def test_a_persistent_session_and_a_retained_message(doors: Doors, tools: dict[str, str]) -> None:
    session = [*at(doors), "-i", "mosquitto-session", "-c", "-q", "1", "-t", "mosquitto/session/#"]
    run_program([tools["sub"], *session, "-E"], doors)  # subscribes and leaves
    for n in range(5):
        run_program([tools["pub"], *at(doors), "-q", "1", "-t", f"mosquitto/session/{n}", "-m", str(n)], doors)
    assert run_program([tools["sub"], *session, "-C", "5"], doors).split() == list("01234")
    run_program([tools["pub"], *at(doors), "-r", "-q", "1", "-t", "mosquitto/kept", "-m", "kept"], doors)
    assert run_program([tools["sub"], *at(doors), "-C", "1", "-t", "mosquitto/kept"], doors).strip() == "kept"
    run_program([tools["pub"], *at(doors), "-r", "-n", "-q", "1", "-t", "mosquitto/kept"], doors)


def test_a_request_gets_its_response(doors: Doors, tools: dict[str, str]) -> None:
    ask = [tools["rr"], *at(doors), "-V", "mqttv5", "-d", "-q", "1", "-t", "mosquitto/ask", "-e", "mosquitto/answer"]
    with (
        listening(
            [tools["sub"], *at(doors), "-V", "mqttv5", "-d", "-q", "1", "-t", "mosquitto/ask", "-C", "1", "-F", "%R"]
        ) as asked,
        subprocess.Popen([*ask, "-m", "?"], stdout=subprocess.PIPE, text=True) as asking,
    ):
        [answers_to] = lines_of(asked)
        run_program([tools["pub"], *at(doors), "-q", "1", "-t", answers_to, "-m", "42"], doors)
        output, _ = asking.communicate(timeout=DEADLINE_S)
    assert output.splitlines()[-1] == "42"


def test_a_will_of_a_killed_subscriber_is_published(doors: Doors, tools: dict[str, str]) -> None:
    watch = [tools["sub"], *at(doors), "-d", "-q", "1", "-t", "mosquitto/will", "-C", "1"]
    will = ["--will-topic", "mosquitto/will", "--will-payload", "gone", "--will-qos", "1"]
    with listening(watch) as watcher:
        with listening([tools["sub"], *at(doors), "-d", "-t", "mosquitto/nothing", *will]) as lost:
            lost.kill()
        assert lines_of(watcher) == ["gone"]
