"""The exposition is OpenMetrics that the official parser reads, in a size that subjects and clients do not change."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from godwit.monitoring.metric_specs import Kind, MetricSpec
from godwit.monitoring.metrics import Metrics, Sources

SHARD = {
    "sends": 5,
    "has_failed": False,
    "cpu_seconds": 1.5,
    "protocols": {"json": {"connections": 2, "gaps": 3}, "binary": {"connections": 1}},
    "close_codes": {1000: 4, 0: 1},
    "gap_reasons": {"expired": 3},
}
FACTS = {"node": 'n"1\n', "version": "0.1.0", "condition": "ready", "uptime_ms": 1_500}


def render(stats: Mapping[str, Any], counts: Mapping[MetricSpec, float] | None = None) -> str:
    sources = Sources(lambda: stats, lambda: counts or {}, lambda: FACTS, {"connections_max": 10})
    kind, text = Metrics(sources).render()
    assert kind.startswith("application/openmetrics-text")
    return text.decode()


def parse(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    families = text_string_to_metric_families(text)
    return {
        sample.name: {
            tuple(sorted(each.labels.items())): each.value for each in family.samples if each.name == sample.name
        }
        for family in families
        for sample in family.samples
    }


def test_what_is_written_can_be_parsed_and_holds_every_number() -> None:
    asked = MetricSpec("authorizer_asked", Kind.COUNTER, "questions", "Questions.")
    text = render({"subjects": 2, "accepted": 9, "shards": [SHARD, {**SHARD, "has_failed": True}]}, {asked: 4.0})
    found = parse(text)
    assert found["godwit_subjects"] == {(): 2} and found["godwit_messages_accepted_total"] == {(): 9}
    assert found["godwit_authorizer_asked_total"] == {(): 4}
    assert found["godwit_connections"][("protocol", "json"), ("shard", "1")] == 2
    assert found["godwit_gaps_total"] == {
        (("protocol", "json"), ("shard", "0")): 3,
        (("protocol", "json"), ("shard", "1")): 3,
    }
    assert found["godwit_shard_sends_total"] == {(("shard", "0"),): 5, (("shard", "1"),): 5}
    assert found["godwit_shard_cpu_seconds_total"][(("shard", "0"),)] == 1.5
    assert found["godwit_shard_failed"] == {(("shard", "0"),): 0, (("shard", "1"),): 1}
    assert found["godwit_closes_by_code_total"] == {
        (("code", "1000"), ("name", "ClosedNormally")): 8,
        (("code", "0"), ("name", "other")): 2,
    }
    assert found["godwit_gaps_by_reason_total"] == {(("reason", "expired"),): 6}
    assert found["godwit_limit"] == {(("limit", "connections_max"),): 10}
    assert found["godwit_info"] == {(("node", 'n"1\n'), ("version", "0.1.0")): 1}
    assert (
        found["godwit_condition"][(("godwit_condition", "ready"),)] == 1
        and sum(found["godwit_condition"].values()) == 1
    )
    assert found["godwit_uptime_seconds"] == {(): 1.5}
    assert text.endswith("# EOF\n") and "process_resident_memory_bytes" in found


def test_the_older_form_holds_the_same_samples() -> None:
    sources = Sources(lambda: {"subjects": 2, "shards": [SHARD]}, dict, lambda: FACTS, {})
    kind, text = Metrics(sources).render(is_old=True)
    assert kind.startswith("text/plain") and b"godwit_subjects 2.0" in text and b"# EOF" not in text


def test_a_million_subjects_do_not_make_it_longer() -> None:
    few, many = render({"subjects": 1}), render({"subjects": 1_000_000})
    assert len(few.splitlines()) == len(many.splitlines())


def test_what_the_engine_does_not_count_as_numbers_never_becomes_a_label() -> None:
    assert "evil" not in render({"node": 'evil"} 1\n', "top": {"evil": 1}, "shards": [{"name": "evil"}]})
