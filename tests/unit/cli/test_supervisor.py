"""The service manager is notified of a node's state, as systemd expects."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from godwit.children import follow_parent
from godwit.cli.supervisor import READY, STOPPING, tell_supervisor


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_socket_that_is_named_is_told(is_abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"@{secrets.token_hex(8)}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(f"\0{name[1:]}" if is_abstract else name)
        heard.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        for state in (READY, STOPPING):
            tell_supervisor(state)
            assert heard.recv(100) == state.encode()


def test_where_nobody_listens_a_node_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    tell_supervisor(READY)
    monkeypatch.setenv("NOTIFY_SOCKET", os.fspath(tmp_path / "gone"))
    tell_supervisor(READY)


def test_a_node_says_when_it_listens_and_when_it_leaves(tmp_path: Path) -> None:
    words = ["serve", *(word for port in ("client", "admin", "mqtt") for word in (f"--{port}", "127.0.0.1:0"))]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(60)
        node = subprocess.Popen(
            [sys.executable, "-m", "godwit", *words],
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=follow_parent(),
        )
        with node:
            try:
                assert heard.recv(100) == READY.encode()
                assert node.stdout is not None and node.stdout.readline().startswith(b"listening ")
                node.terminate()
                assert heard.recv(100) == STOPPING.encode()
                assert node.wait(60) == 0
            finally:
                node.kill()
