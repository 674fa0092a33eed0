"""The servers that can be measured: how each is started on a free port of loopback, and the protocol of the generator for
it.

A rival is used if its program is on the path; none is required. Each runs with its default settings, except limits that
would end the load. Every process started here is ended here.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..children import follow_parent
from ..errors import GodwitError
from .certificate import CERTIFICATE, make_certificate

START_SECONDS_MAX = 20.0
NCHAN_MODULE = "/usr/lib/nginx/modules/ngx_nchan_module.so"


class BenchFailed(GodwitError):
    """A server or a load did not do what the measurement needs."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens."""

    address: str
    pids: list[int]
    certificate: Path | None = None
    """The certificate that its clients trust, if it uses TLS."""


@dataclass(frozen=True, slots=True)
class Order:
    """The purpose for which a target is started."""

    driver: str = "auto"
    shards: int = 1
    limits: Mapping[str, int] | None = None
    is_killed: bool = False
    """Killed without a drain, because a drain of a million clients is not measured."""
    data: Path | None = None
    """The folder of its journal; None: next to its log, and deleted with it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server: its protocol, its command, and whether it can run here."""

    name: str
    dialect: str
    command: Callable[[Path, int, Order], list[str]]
    driver: str = ""
    """The node's settings, independent of the measurement."""
    program: str = ""
    file: str = ""
    """A file that it needs in addition to its program."""
    says_address: bool = False
    """Whether it prints its address; otherwise it gets a port."""
    door: str = "client"
    """Which of the printed addresses to use."""
    has_acks: bool = True
    has_workers: bool = False
    """Whether it works in child processes."""
    subject_publishers: bool = False
    """Whether it needs a publisher for each subject."""
    has_tls: bool = False

    def is_ours(self) -> bool:
        """This node, or the baseline it is measured against."""
        return self.name.startswith(("godwit", "baseline"))

    def is_here(self) -> bool:
        return not self.missing()

    def missing(self) -> str:
        """What this machine lacks to run it, as a sentence; empty if nothing."""
        if self.program and shutil.which(self.program) is None:
            return f"{self.program} is not on the path"
        return (
            f"{os.path.basename(self.file)} does not exist here" if self.file and not os.path.exists(self.file) else ""
        )


REPOSITORY = Path(__file__).resolve().parents[3]
"""The working copy of this package; None if the package is installed."""
BASELINE = REPOSITORY / "benchmarks/baseline/baseline.c"
"""The source of the baseline, which is in the repository and not in the wheel."""


def _baseline(*mode: str) -> Callable[[Path, int, Order], list[str]]:
    def command(directory: Path, port: int, order: Order) -> list[str]:
        program = directory / "baseline"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, BASELINE], check=True)
        return [str(program), "0", *mode]

    return command


def _godwit(directory: Path, port: int, order: Order) -> list[str]:
    settings = {
        "client.address": "127.0.0.1:0",
        "mqtt.address": "127.0.0.1:0",
        "admin.address": "127.0.0.1:0",
        "node.shards": order.shards,
        "node.driver": order.driver,
        "logging.level": "warning",
        **{f"limits.{name}": value for name, value in (order.limits or {}).items()},
    }
    flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "godwit", "serve", *flags]


def _godwit_tls(directory: Path, port: int, order: Order) -> list[str]:
    certificate, key = make_certificate(directory)
    settings = {
        "client.tls_address": "127.0.0.1:0",
        "tls.certificate_files": str(certificate),
        "tls.key_files": str(key),
    }
    flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
    return [*_godwit(directory, port, order), *flags]


def _godwit_journal(directory: Path, port: int, order: Order) -> list[str]:
    """Godwit with a full journal: messages, sessions and every delivery."""
    data = order.data or directory / "data"
    return [*_godwit(directory, port, order), "--set", f"node.data_directory={data}"]


def _mosquitto(directory: Path, port: int, order: Order) -> list[str]:
    file = directory / "mosquitto.conf"
    file.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_type error\nmax_queued_messages 0\n"
        "max_inflight_messages 0\nset_tcp_nodelay true\n"
    )
    return ["mosquitto", "-c", str(file)]


def _nchan(directory: Path, port: int, order: Order) -> list[str]:
    file = directory / "nginx.conf"
    file.write_text(
        f"load_module {NCHAN_MODULE};\n"
        f"daemon off;\nworker_processes 1;\npid {directory}/pid;\nerror_log {directory}/log error;\n"
        "events { worker_connections 18000; }\n"
        "http { access_log off; nchan_max_reserved_memory 512M; server { "
        f"listen 127.0.0.1:{port} backlog=4096;\n"
        "location ~ /sub/(\\w+)$ { nchan_subscriber websocket; nchan_channel_id $1; }\n"
        "location ~ /pub/(\\w+)$ { nchan_publisher websocket; nchan_channel_id $1; nchan_message_buffer_length 1000; }\n"
        "} }\n"
    )
    return ["nginx", "-c", str(file)]


def _nats(directory: Path, port: int, order: Order) -> list[str]:
    file = directory / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:{port}"\nmax_connections: 200000\nmax_pending: 536870912\nwrite_deadline: "60s"\n'
    )
    return ["nats-server", "-c", str(file)]


def _nats_mqtt(directory: Path, port: int, order: Order) -> list[str]:
    """NATS's MQTT needs JetStream; its streams, the sessions, are in memory."""
    file = directory / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:-1"\nserver_name: "bench"\nmax_connections: 200000\nmax_pending: 536870912\n'
        f'jetstream {{ store_dir: "{directory}/store" }}\n'
        f'mqtt {{ listen: "127.0.0.1:{port}", stream_replicas: 1, max_ack_pending: 1024 }}\n'
    )
    return ["nats-server", "-c", str(file)]


TARGETS = {
    target.name: target
    for target in (
        Target("godwit", "godwit-json", _godwit, says_address=True),
        Target("godwit-readiness", "godwit-json", _godwit, driver="readiness", says_address=True),
        Target("godwit-journal", "godwit-json", _godwit_journal, says_address=True),
        Target("godwit-binary", "godwit-binary", _godwit, says_address=True),
        Target("godwit-disk", "godwit-disk", _godwit_journal, says_address=True),
        Target("godwit-tls", "godwit-json", _godwit_tls, says_address=True, door="client_tls", has_tls=True),
        Target("godwit-http", "godwit-http", _godwit, says_address=True),
        Target("godwit-mqtt", "mqtt", _godwit, says_address=True, door="mqtt"),
        Target("godwit-mqtt-qos1", "mqtt-qos1", _godwit, says_address=True, door="mqtt"),
        Target("baseline", "baseline", _baseline(), program="cc", file=str(BASELINE), says_address=True),
        Target("baseline-merge", "baseline", _baseline("merge"), program="cc", file=str(BASELINE), says_address=True),
        Target("mosquitto", "mqtt", _mosquitto, program="mosquitto"),
        Target("mosquitto-qos1", "mqtt-qos1", _mosquitto, program="mosquitto"),
        Target("nchan", "nchan", _nchan, program="nginx", file=NCHAN_MODULE, has_workers=True, subject_publishers=True),
        Target("nats", "nats", _nats, program="nats-server", has_acks=False),
        Target("nats-mqtt-qos1", "mqtt-qos1", _nats_mqtt, program="nats-server"),
    )
}
RIVALS = ("mosquitto", "nchan", "nats")


@contextmanager
def start_target(target: Target, order: Order, core: int | None) -> Iterator[Running]:
    """Start a server on one core, wait until it accepts, and end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        port = _find_port()
        command = target.command(directory, port, order)
        log = directory / "stderr"
        with log.open("wb") as errors, _stay_on(core):
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, cwd=directory, preexec_fn=follow_parent()
            )
        try:
            address = _read_address(process, log, target.door) if target.says_address else f"127.0.0.1:{port}"
            _wait_for(address, process, log)
            certificate = directory / CERTIFICATE if target.has_tls else None
            yield Running(address, _list_pids(process, target.has_workers), certificate)
            if process.poll() is not None:
                raise BenchFailed(f"{target.name} ended by itself: {_tail(log)}")
        finally:
            if order.is_killed:
                process.kill()
            _end(process)


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _stay_on(core: int | None) -> Iterator[None]:
    """Children started within it stay on this core."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _read_address(process: subprocess.Popen[bytes], log: Path, door: str) -> str:
    """The address in the line `listening client=HOST:PORT …` or `listening HOST:PORT`."""
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    for word in line.split()[1:]:
        name, _, address = word.rpartition("=")
        if name in (door, "") and line.startswith("listening "):
            return address
    raise BenchFailed(f"the server did not start: {line.strip()} {_tail(log)}")


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + START_SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise BenchFailed(f"the server did not start: {_tail(log)}")


def _list_pids(process: subprocess.Popen[bytes], has_workers: bool) -> list[int]:
    """The process ids of the server; a server with workers may accept before they exist."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        if children or not has_workers or time.monotonic() > deadline:
            return [process.pid, *children]
        time.sleep(0.05)


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-500:].strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
