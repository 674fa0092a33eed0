"""What this process uses is more than nothing, and a processor's time only grows."""

from godwit.monitoring.process import ProcessMeter


def test_a_process_uses_memory_and_time() -> None:
    meter = ProcessMeter()
    before, after = meter.read(), meter.read()
    assert before["memory_bytes"] > 1_000_000
    assert 0 < before["cpu_seconds"] <= after["cpu_seconds"]
