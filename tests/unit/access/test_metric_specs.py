"""The gate's counts and stuck calls are figures under the names that the reference lists."""

from godwit.access.gate import Gate
from godwit.access.metric_specs import count_authorizer
from godwit.extension import ExtensionHost
from godwit.monitoring.schema import list_metrics


async def test_each_count_is_a_metric_of_the_reference() -> None:
    host = ExtensionHost("authorizer")
    host.stuck = 3
    counted = {
        figure.name: value
        for figure, value in count_authorizer(Gate(None, list, timeout_ms=1, calls_max=1), host).items()
    }
    assert counted["authorizer_stuck"] == 3 and counted["authorizer_waiting"] == 0
    listed = {name.removeprefix("godwit_").removesuffix("_total") for name, *_ in list_metrics()}
    assert set(counted) <= listed
