"""Liveness: silence, ping, death, and the silence that is this side's own."""

from __future__ import annotations

from godwit.client.liveness import Health, Liveness


def test_silence_ping_death() -> None:
    liveness = Liveness(100, 50)
    liveness.received(0)
    assert [liveness.judge(now) for now in (0, 99, 100)] == [Health.FINE, Health.FINE, Health.PING_DUE]
    liveness.pinged(100)
    assert [liveness.judge(now) for now in (100, 149, 150)] == [Health.FINE, Health.FINE, Health.DEAD]
    liveness.received(151)
    assert liveness.judge(151) is Health.FINE


def test_own_silence_does_not_count() -> None:
    liveness = Liveness(100, 50)
    liveness.pinged(0)
    liveness.hold(10, True)
    assert liveness.judge(10_000) is Health.FINE
    liveness.hold(10_000, False)
    assert liveness.judge(10_099) is Health.FINE
