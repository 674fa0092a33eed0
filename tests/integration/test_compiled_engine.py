"""The interface of the compiled engine: what it refuses, and that its stub is correct."""

import select
import socket
import subprocess
import sys
from typing import Any

import pytest

from godwit.config import build_config
from godwit.engine import Engine, Start, open_engine
from godwit.errors import ListenFailed
from tests.architecture.source import ROOT

ALL = [("/**", "both", "allow")]


def build_engine(port: int = 0, **node: Any) -> Engine:
    settings = {"client": {"address": f"127.0.0.1:{port}"}, "node": {"shards": 2, **node}}
    return open_engine(build_config(settings, {}, {}), Start(run=1, seed=1, epoch=7, anonymous=ALL, asks=False))


def test_the_stub_tells_the_truth() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "godwit._engine"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout


def test_settings_that_do_not_fit_are_a_sentence() -> None:
    kind = type(build_engine().compiled)
    for settings, reason in [
        ("{", "EOF"),
        ('{"shard": 1}', "unknown field `shard`"),
        ('{"driver": "epoll"}', "driver"),
    ]:
        with pytest.raises(ValueError, match=reason):
            kind(settings)


def test_a_taken_port_is_an_operating_system_error_that_names_the_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        engine = build_engine(taken.getsockname()[1])
        with pytest.raises(OSError, match=r"^client on 127\.0\.0\.1:\d+: .* in use"):
            engine.compiled.start()
        with pytest.raises(ListenFailed):
            engine.start()


@pytest.mark.parametrize(
    "order",
    [
        ("sing",),
        ("refuse", 1),
        ("close", 1, 9, "no such code"),
        ("grant", 1, "me", [("/a", "both", "perhaps")], None),
        ("answer", 1, ("no slash", "both", "allow")),
    ],
)
def test_an_order_that_does_not_fit_is_refused_before_any_is_carried_out(order: tuple[Any, ...]) -> None:
    compiled = build_engine().compiled
    compiled.order([("close", 1, 4000, "fits")])
    with pytest.raises((ValueError, TypeError)):
        compiled.order([("close", 1, 4000, "fits"), order])


def test_reports_wait_behind_a_descriptor_until_they_are_taken() -> None:
    engine = build_engine()
    engine.start()
    try:
        assert not select.select([engine.report_fd()], [], [], 0)[0]
        engine.drain(0, 0)
        assert select.select([engine.report_fd()], [], [], 30)[0]
        assert engine.reports() == [("drained",)]
        assert not select.select([engine.report_fd()], [], [], 0)[0] and engine.reports() == []
    finally:
        engine.stop()


DROPPED = """
import os
from tests.integration.test_compiled_engine import build_engine

def count():
    return tuple(len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd"))

before = count()
for _ in range(3):
    engine = build_engine()
    engine.start()
    assert count() > before
    del engine
    assert count() == before, (count(), before)
"""


def test_an_engine_that_is_dropped_leaves_no_thread_and_no_descriptor() -> None:
    # In a process of its own: in this one, what earlier tests left to the garbage collector may be closed in between.
    done = subprocess.run([sys.executable, "-c", DROPPED], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
