"""The exposition is OpenMetrics that a parser reads, in a size that subjects and clients do not change."""

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from godwit.monitoring.figures import Figure
from godwit.monitoring.metrics import Metrics


def render(stats: dict[str, Any], counts: dict[Figure, float] | None = None) -> str:
    return Metrics(lambda: stats, lambda: counts or {}).render().decode()


def test_what_is_written_can_be_parsed_and_holds_every_number() -> None:
    counts = {Figure("godwit_authorizer_asked", "counter", "Questions."): 4.0}
    text = render({"subjects": 2, "shards": [{"sent": 5}, {"sent": 6}]}, counts)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["godwit_authorizer_asked"].type == "counter"
    assert families["godwit_authorizer_asked"].samples[0].value == 4
    shards = next(family for name, family in families.items() if "shard_sent" in name)
    assert [(sample.labels, sample.value) for sample in shards.samples] == [({"shard": "0"}, 5), ({"shard": "1"}, 6)]
    assert text.endswith("# EOF\n") and "process_resident_memory_bytes" in families


def test_a_million_subjects_do_not_make_it_longer() -> None:
    few, many = render({"subjects": 1}), render({"subjects": 1_000_000})
    assert len(few.splitlines()) == len(many.splitlines())


def test_what_the_engine_does_not_count_as_numbers_never_becomes_a_label() -> None:
    assert "evil" not in render({"node": 'evil"} 1\n', "top": {"evil": 1}, "shards": [{"name": "evil"}]})
