"""A reading puts every count of the engine into its scope; two give rates that are never negative."""

from typing import Any

from godwit.monitoring.stats_snapshot import NODE_SCOPE, Series, compare, list_protocol_values, take_reading


def make_stats(messages: int, refusals: dict[int, int] | None = None) -> dict[str, Any]:
    protocol = {"connections": 2, "messages_in": messages, "publishes_refused": sum((refusals or {}).values())}
    shard = {
        "sends": 10 * messages,
        "cpu_seconds": 0.5 * messages,
        "refused": 3,
        "protocols": {"json": protocol, "binary": {"connections": 1, "messages_in": 0}},
        "publish_codes": refusals or {},
        "gap_reasons": {"expired": messages, "overrun": 0},
        "has_failed": False,
        "secret": "text",
    }
    return {"subjects": 4, "refused": 7, "epoch": 9, "shards": [shard, shard]}


def read(stats: dict[str, Any], time_s: float = 0.0) -> dict[tuple[str, ...], dict[str, float]]:
    scopes = take_reading(time_s, stats, {"memory_bytes": 5.0, "cpu_seconds": 1.0}).scopes
    return {scope: {figure.name: value for figure, value in values.items()} for scope, values in scopes.items()}


def test_every_scope_has_its_own_and_the_node_has_the_sums() -> None:
    scopes = read(make_stats(5, {4114: 2}))
    assert scopes["shards", "1"]["connections"] == 3 and scopes["shards", "1"]["sends"] == 50
    assert scopes["protocols", "json"]["messages_in"] == 10 and scopes["protocols", "binary"]["connections"] == 2
    assert scopes["codes", "4114"] == {"publishes_refused": 4}
    assert scopes["reasons", "expired"] == {"gaps": 10} and scopes["reasons", "overrun"] == {"gaps": 0}
    node = scopes[NODE_SCOPE]
    assert (node["connections"], node["sends"], node["subjects"], node["memory_bytes"]) == (6, 100, 4, 5)
    assert node["cpu_seconds"] == 1.0, "the process's, which is more than its shards'"
    assert (node["messages_refused"], node["connections_refused"]) == (7, 6)


def test_two_readings_give_gauges_as_they_are_and_growth_a_second() -> None:
    before, after = take_reading(10.0, make_stats(5), {}), take_reading(12.0, make_stats(9, {4120: 6}), {})
    found = compare(before, after)
    assert found[Series(NODE_SCOPE, "connections")] == 6
    assert found[Series(("protocols", "json"), "messages_in_per_second")] == 4
    assert found[Series(("shards", "0"), "cpu")] == 1
    assert found[Series(("codes", "4120"), "publishes_refused_per_second")] == 6
    assert Series(NODE_SCOPE, "") not in found and Series(NODE_SCOPE, "epoch") not in found
    assert min(compare(after, before).values()) >= 0, "counters that went back are no negative rate"
    assert compare(after, after)[Series(("shards", "0"), "cpu")] == 0


def test_only_codes_and_reasons_were_nothing_before_they_were_seen() -> None:
    scopes = [("codes", "4114"), ("reasons", "ahead"), ("protocols", "mqtt"), NODE_SCOPE, ("shards", "0")]
    assert [Series(scope, "x").begins_at_zero for scope in scopes] == [True, True, False, False, False]


def test_each_protocol_of_each_shard_is_listed_whatever_it_is_called() -> None:
    stats: dict[str, Any] = {"shards": [{"protocols": {"new": {"gaps": 1}}}, {}]}
    listed = [(shard, protocol, list(values.values())) for shard, protocol, values in list_protocol_values(stats)]
    assert listed == [("0", "new", [1.0])]


def test_what_an_engine_does_not_tell_is_not_there() -> None:
    assert read({}) == {NODE_SCOPE: {"memory_bytes": 5.0, "cpu_seconds": 1.0}}
    assert read({"shards": None, "subjects": "many"}).keys() == {NODE_SCOPE}
