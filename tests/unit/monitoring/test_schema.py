"""The schema and the reference table are generated from the metrics' table, and a node's answer fits the schema."""

import json

from godwit.monitoring.metric_specs import CODE, NODE, PROTOCOL, REASON, SHARD
from godwit.monitoring.schema import SCOPES, list_stats_metrics, make_schema
from godwit.monitoring.windows import WINDOWS


def test_every_metric_of_every_scope_is_described_once_in_the_table() -> None:
    rows = list(list_stats_metrics())
    names = [name for name, *_ in rows]
    figures = (*NODE, *PROTOCOL, *SHARD, *CODE, *REASON)
    assert sorted(names) == sorted({figure.metric for figure in figures} - {""})
    assert all(unit and sentence.endswith(".") and scopes for _, unit, sentence, scopes in rows)
    assert dict((name, scopes) for name, _, _, scopes in rows)["gaps_per_second"] == "node, shards, protocols, reasons"


def test_the_schema_names_all_windows_and_refuses_what_is_in_no_table() -> None:
    properties = make_schema()["properties"]
    assert list(properties["windows"]["properties"]) == list(WINDOWS)
    for tree in (properties["now"], properties["windows"]["properties"]["1h"]):
        node = tree["properties"]["node"]
        assert node["additionalProperties"] is False and len(node["properties"]) > 40
    json.dumps(make_schema())


def test_the_nodes_figures_hold_no_metric_twice() -> None:
    for figures in SCOPES.values():
        names = [figure.metric for figure in figures if figure.metric]
        assert len(set(names)) == len(names)
