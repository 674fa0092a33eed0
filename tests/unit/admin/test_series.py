"""The series: rates from counters, null for unknown values, bounded, and each sample returned once."""

from typing import Any

from godwit.admin.series import SAMPLES_MAX, Cost, Series


def make_stats(accepted: int, *shards: dict[str, Any]) -> dict[str, Any]:
    return {"accepted": accepted, "subjects": 3, "shards": list(shards)}


def test_counters_become_rates_and_gauges_stay() -> None:
    series = Series()
    series.add(
        1_000,
        1.0,
        make_stats(10, {"connections": 1, "bytes_in": 100}, {"connections": 2, "bytes_in": 0}),
        Cost(1.0, 7),
    )
    series.add(
        3_000,
        3.0,
        make_stats(30, {"connections": 4, "bytes_in": 300}, {"connections": 5, "bytes_in": 50}),
        Cost(2.0, 8),
    )
    shown = series.show(0, has_shards=True)
    assert shown["time_ms"] == [3_000]
    node = {name: column[0] for name, column in shown["node"].items() if column[0] is not None}
    assert node["published_per_s"] == 10 and node["bytes_in_per_s"] == 125 and node["connections"] == 9
    assert node["cpu_cores"] == 0.5 and node["memory_bytes"] == 8 and node["subjects"] == 3
    assert "gaps_per_s" not in node, "what the engine did not tell is null, not 0"
    assert [shard["bytes_in_per_s"] for shard in shown["shards"]] == [[100], [25]]


def test_a_shards_cpu_is_its_threads() -> None:
    series = Series()
    for second in (1, 2):
        series.add(second * 1_000, float(second), make_stats(0, {}, {"cpu_seconds": second * 0.25}), Cost(second, 0))
    shards = series.show(0, has_shards=True)["shards"]
    assert [shard["cpu_cores"] for shard in shards] == [[None], [0.25]]


def test_what_is_counted_by_protocol_is_summed() -> None:
    series = Series()
    for second in (1, 2):
        protocols = {
            "json": {"messages_out": second * 10, "slow_consumers": 1},
            "binary": {"messages_out": second, "slow_consumers": 2},
        }
        series.add(second * 1_000, float(second), make_stats(0, {"protocols": protocols}), Cost(0, 0))
    node = series.show(0, has_shards=False)["node"]
    assert (node["messages_out_per_s"], node["slow_consumers"]) == ([11], [3])


def test_it_is_bounded_and_each_sample_is_told_once() -> None:
    series = Series()
    for second in range(SAMPLES_MAX + 50):
        series.add(second * 1_000, float(second), make_stats(second, {}), Cost(0, 0))
    shown = series.show(0, has_shards=False)
    assert len(shown["time_ms"]) == SAMPLES_MAX and shown["shards"] == []
    assert series.show(shown["time_ms"][-2], has_shards=False)["time_ms"] == shown["time_ms"][-1:]
    assert series.show(shown["time_ms"][-1], has_shards=True)["time_ms"] == []


def test_a_counter_that_fell_and_a_clock_that_stood_make_no_rate() -> None:
    series = Series()
    series.add(1, 1.0, make_stats(10), Cost(1, 0))
    series.add(2, 1.0, make_stats(20), Cost(1, 0))
    assert series.show(0, has_shards=False)["time_ms"] == []
    series.add(3, 2.0, make_stats(5), Cost(1, 0))
    assert series.show(0, has_shards=False)["node"]["published_per_s"] == [0]
