"""Figures are bounded: names from a table, shards as the only label, nothing that clients choose."""

from godwit.monitoring.figures import COUNTERS, GAUGES, SHARDS_MAX, find_figure, list_samples


def test_samples_are_the_nodes_and_the_shards_numbers() -> None:
    stats = {
        "connections": 3,
        "driver": "io_uring",
        "is_draining": True,
        "shards": [{"shard": 0, "sent": 1.5}, {"shard": 1, "sent": 2}],
    }
    samples = [
        (sample.figure.name.removeprefix("godwit_").removeprefix("engine_"), sample.shard, sample.value)
        for sample in list_samples(stats)
    ]
    assert samples == [("connections", None, 3), ("shard_sent", "0", 1.5), ("shard_sent", "1", 2)]


def test_no_more_shards_than_there_can_be_become_labels() -> None:
    assert len(list(list_samples({"shards": [{"sent": 1}] * 1_000}))) == SHARDS_MAX


def test_every_figure_has_one_kind_and_a_sentence() -> None:
    assert not GAUGES.keys() & COUNTERS.keys()
    for sentence in [*GAUGES.values(), *COUNTERS.values()]:
        assert sentence.endswith(".") and "\n" not in sentence
    assert find_figure("never_heard_of").name == "godwit_engine_never_heard_of"
