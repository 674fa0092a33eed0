"""A node for tests: on free ports, stopped when the block ends, also by an error."""

import pytest

from godwit import testing
from godwit.monitoring.health import Condition
from godwit.testing.fake_engine import open_fake_engine


async def test_two_nodes_run_beside_each_other_and_stop_with_their_blocks() -> None:
    async with testing.node(open_engine=open_fake_engine) as one, testing.node(open_engine=open_fake_engine) as two:
        assert one.client.port != two.client.port
        assert one.url == f"ws://127.0.0.1:{one.client.port}/v1/live"
    assert one.node.health.condition is two.node.health.condition is Condition.STOPPED


async def test_a_failing_test_stops_its_node_too() -> None:
    with pytest.raises(KeyError):
        async with testing.node({"node": {"name": "x"}}, open_engine=open_fake_engine) as running:
            raise KeyError
    assert running.node.health.condition is Condition.STOPPED
