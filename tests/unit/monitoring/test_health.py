"""One word for the node's condition; a failure is not talked away."""

from godwit.monitoring.health import Condition, Health


def test_only_ready_is_ready_and_draining_is_alive() -> None:
    health = Health()
    seen = []
    for condition in (Condition.STARTING, Condition.READY, Condition.DRAINING, Condition.STOPPED):
        health.change(condition)
        seen.append((health.is_alive, health.is_ready))
    assert seen == [(True, False), (True, True), (True, False), (False, False)]


def test_a_failure_stays_until_the_node_stopped() -> None:
    health = Health()
    health.change(Condition.FAILED, "shard 1 gave up")
    health.change(Condition.READY)
    assert (health.condition, health.reason) == (Condition.FAILED, "shard 1 gave up")
    health.change(Condition.STOPPED)
    assert health.condition is Condition.STOPPED
