"""A standalone Spark cluster on this machine, from the pip package alone: a master and workers as child processes.

Owns the processes: they end with this one, and their logs are files in a folder. Meant for a first try, and for tests that kill workers.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import pyspark

from .errors import ConfigInvalid, PipelineError
from .session import ask_for_plain_messages, check_memory

_START_S = 120.0
_HOST = "127.0.0.1"
_MASTER = "-Dspark.port.maxRetries=0 -Dspark.master.rest.enabled=false"
"""Spark uses exactly this port or fails, because a page on the next free port would not be found."""


@dataclass
class Cluster:
    """A running master and its workers."""

    folder: Path
    port: int
    page: int
    cores: int
    memory: str
    master: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"spark://{_HOST}:{self.port}"

    @property
    def page_url(self) -> str:
        return f"http://{_HOST}:{self.page}"

    def start_worker(self) -> subprocess.Popen[bytes]:
        """One more worker."""
        name = f"worker-{len(self.workers) + 1}"
        worker = self._start(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", _HOST, "--cores", str(self.cores), "--memory", self.memory),
            *("--work-dir", str(self.folder / name), "--webui-port", "0", self.url),
        )
        self.workers.append(worker)
        return worker

    def start(self, workers: int) -> None:
        """Start the master and this many workers; returns when the master knows all of them."""
        self.master = self._start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", _HOST, "--port", str(self.port), "--webui-port", str(self.page)),
        )
        self.wait_for(0)
        for _ in range(workers):
            self.start_worker()
        self.wait_for(workers)

    def parts(self) -> dict[str, subprocess.Popen[bytes]]:
        """The processes by the names of their log files."""
        named = {f"worker-{number}": worker for number, worker in enumerate(self.workers, 1)}
        return ({"master": self.master} if self.master else {}) | named

    def alive(self) -> int:
        """Number of workers that the master counts as alive; -1 while its page does not answer. Its port answers earlier."""
        try:
            with urllib.request.urlopen(self.page_url + "/json/", timeout=5) as answer:
                state = json.load(answer)
        except (OSError, HTTPException, ValueError):
            return -1
        return int(state.get("aliveworkers", -1)) if isinstance(state, dict) else -1

    def check(self) -> None:
        """Raises if the master has ended."""
        self._check("master")

    def wait_for(self, workers: int) -> None:
        """Wait until the master counts this many workers as alive; raises if a process has ended."""
        deadline = time.monotonic() + _START_S
        while self.alive() < workers:
            for name in self.parts():
                self._check(name)
            if time.monotonic() > deadline:
                raise PipelineError(f"the cluster did not start within {_START_S:g} s; see {self.folder}")
            time.sleep(0.2)

    def stop(self) -> None:
        for process in reversed(self.parts().values()):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, what: str, *words: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": _MASTER,
            "PYSPARK_PYTHON": sys.executable,
        }
        ask_for_plain_messages(environment)
        environment |= {"SPARK_LOCAL_IP": _HOST, "SPARK_NO_DAEMONIZE": "1"}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(home / "bin" / "spark-class"), what, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def _check(self, name: str) -> None:
        """Raises where this part has ended."""
        part = self.parts().get(name)
        if part is not None and part.poll() is not None:
            raise PipelineError(f"{name} of the cluster exited with {part.returncode}; see {self.folder / name}.log")


def die_with_parent() -> None:
    """Run in a child before its program (Popen's preexec_fn): the child ends with the thread that started it, also if that is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def check_free(key: str, port: int) -> None:
    """Raises ConfigInvalid for a port that is in use. Spark would take the next one, and its workers would join the process on this one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does
        try:
            probe.bind((_HOST, port))
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "must be 0 to 65535"
            raise ConfigInvalid(key, port, f"cannot be listened on: {why}", hint="0 chooses one") from error


@contextmanager
def running_cluster(
    folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "2g", port: int = 0, page: int = 0
) -> Iterator[Cluster]:
    """A cluster that runs while the block runs. A port of 0 is chosen freely."""
    for key, wanted in (("--port", port), ("--page", page)):
        check_free(key, wanted)
    check_memory("--memory", memory)
    cluster = Cluster(folder.absolute(), port or free_port(), page or free_port(), cores, memory)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
