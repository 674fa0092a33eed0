"""A disk that fails is in health and in the log until it works again."""

import structlog

from godwit.monitoring.disk_reports import DISK_REPORTS, take_disk_report
from godwit.monitoring.health import Health


def test_each_report_is_logged_and_shown_in_health_until_the_disk_works_again() -> None:
    for kind in DISK_REPORTS:
        health = Health()
        with structlog.testing.capture_logs() as lines:
            take_disk_report(health, kind, "no space left")
            shown = [health.journal, health.snapshots, health.sealing]
            take_disk_report(health, kind, None)
        assert sorted(shown) == ["", "", "no space left"]
        assert (health.journal, health.snapshots, health.sealing) == ("", "", "")
        failing, recovered = lines
        assert (failing["log_level"], failing["reason"]) == ("error", "no space left")
        assert failing["event"].removesuffix("failing") == recovered["event"].removesuffix("recovered")
