"""The log lines of a node's start: its addresses, what it recovered from the journal, and warnings about its settings.

Owns these lines and when they are written. It changes nothing.
"""

from __future__ import annotations

import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .config import Address, Config
from .engine import Listening
from .logs import read_logger

DESCRIPTORS_KEPT = 100
"""File descriptors that are not for connections: for the admin port, the journal and the node's statistics."""

CERTIFICATE_LEFT = timedelta(days=7)
"""The start warns about a certificate with less remaining time than this, and less than a tenth of its validity."""


def announce(config: Config, listening: Listening, admin: Address) -> None:
    log = read_logger()
    if listening.driver_reason:
        log.info("driver_fell_back", driver=listening.driver, reason=listening.driver_reason)
    log.info("node_started", client=str(listening.client), admin=str(admin), driver=listening.driver)
    if config.mqtt.enabled and listening.mqtt is None:
        address = str(config.mqtt.address)
        log.warning("mqtt_disabled", reason="the default MQTT port is taken", address=address, set="mqtt.address")
    if config.node.data_directory and listening.resumed is None:
        log.info("journal_disabled", effect="messages are lost when the node stops", set="journal.enabled")
    if listening.resumed is not None:
        said = listening.resumed.get("said", ())
        log.info("journal_opened", **{name: value for name, value in listening.resumed.items() if name != "said"})
        for what in said:
            log.warning("journal_repaired", repair=what)
    if config.access.mode == "none" and not is_loopback(listening.client.host):
        log.warning("access_open", effect="anyone who reaches the client port can publish", set="access.mode")
    for file in config.tls.certificate_files:
        _look_at_certificate(Path(file))
    if listening.driver == "readiness":
        _look_at_descriptors(config.limits["connections_max"])


def is_loopback(host: str) -> bool:
    """Whether the host is reachable from this machine only."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _look_at_certificate(file: Path) -> None:
    """Warn about a certificate outside its validity: the node uses it, clients refuse it, and the node sees only failed handshakes."""
    from cryptography import x509  # loaded only where there are certificates

    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError):
        return  # the engine has read it; what is no PEM of this library's is not judged here
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    if left <= timedelta():
        read_logger().warning("certificate_expired", file=str(file), since=certificate.not_valid_after_utc.isoformat())
    elif left < min(CERTIFICATE_LEFT, (certificate.not_valid_after_utc - certificate.not_valid_before_utc) / 10):
        read_logger().warning("certificate_expires", file=str(file), at=certificate.not_valid_after_utc.isoformat())


def _look_at_descriptors(connections_max: int) -> None:
    """Warn if clients can use all file descriptors: then new connections are closed without a code."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and limit - DESCRIPTORS_KEPT < connections_max:
        few = f"set limits.connections_max to {limit - DESCRIPTORS_KEPT:,} or less, or "
        hint = f"{few if limit > DESCRIPTORS_KEPT else ''}raise ulimit -n to {connections_max + DESCRIPTORS_KEPT:,}"
        read_logger().warning("descriptor_limit_low", descriptors=limit, connections_max=connections_max, hint=hint)
