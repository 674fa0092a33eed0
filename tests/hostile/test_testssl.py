"""testssl.sh finds no vulnerability on any TLS listener, and no other finding than those listed here (long)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.authority import Authority
from tests.mqtt.clients.conftest import find_program
from tests.mqtt.conftest import serve

DEADLINE_S = 280
CHECKS = ["--protocols", "--std", "--fs", "--server-preference", "--server-defaults", "--vulnerable"]
FINE = {"OK", "INFO", "DEBUG"}
DISLIKED = {
    "cert_": "of the test's certificate: its authority is known to nobody, and lists and stamps it has none",
    "DNS_CAArecord": "nobody's name is asked about",
    "OCSP_stapling": "the certificate has nobody to ask",
    "engine_problem": "said of the openssl that it runs on itself",
    "sessionresumption_ticket": "a check that this openssl cannot make; `openssl s_client -sess_in` resumes",
}
"""What it may call low or worse, by how the name of the finding begins, and why."""

pytestmark = pytest.mark.long


def find_faults(program: str, address: tuple[str, int], report: Path) -> tuple[int, dict[str, str]]:
    """How many findings there were, and those that are worse than fine."""
    how = ["--quiet", "--color", "0", "--warnings", "off", "--openssl-timeout", "20", "--connect-timeout", "20"]
    command = [program, *how, "--jsonfile", str(report), *CHECKS, f"{address[0]}:{address[1]}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S)
    findings = json.loads(report.read_text())
    assert findings, done.stdout[-2_000:] + done.stderr[-2_000:]
    worse = {one["id"]: f"{one['severity']}: {one['finding']}" for one in findings if one["severity"] not in FINE}
    return len(findings), {name: said for name, said in worse.items() if not name.startswith(tuple(DISLIKED))}


@pytest.mark.parametrize("listener", ["client_tls", "mqtt_tls"])
def test_testssl_finds_nothing_vulnerable(tmp_path: Path, listener: str) -> None:
    program = find_program("testssl", "Debian, Ubuntu: apt install testssl.sh")
    chain, key = Authority(tmp_path).issue("localhost", "127.0.0.1")
    doors = ("mqtt.tls_address=127.0.0.1:0", "client.tls_address=127.0.0.1:0")
    with serve(f"tls.certificate_files={chain}", f"tls.key_files={key}", *doors) as node:
        count, faults = find_faults(program, node[listener], tmp_path / "report.json")
    assert not faults
    assert count > 60, "it looked at everything"
