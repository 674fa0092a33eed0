"""The use of limits, and when a shared table is reported as nearly full."""

import structlog

from godwit.limits import LIMITS
from godwit.monitoring.fullness import (
    SHARED,
    USED_BY_A_SHARD,
    USED_BY_ALL_SHARDS,
    USED_BY_NODE,
    FullnessWatch,
    count_used,
)


def test_each_shared_table_has_a_limit_and_a_count() -> None:
    counted = USED_BY_NODE.keys() | USED_BY_ALL_SHARDS.keys() | USED_BY_A_SHARD.keys()
    assert set(SHARED) <= counted <= {limit.name for limit in LIMITS}


def test_use_is_summed_over_shards_or_the_fullest_ones() -> None:
    shards = [{"connections": 3, "streams": 5}, {"connections": 4, "streams": 2}]
    assert count_used("connections_max", {}, shards) == 7
    assert count_used("streams_per_shard_max", {}, shards) == 5
    assert count_used("subjects_max", {"subjects": 9}, shards) == 9
    assert count_used("message_bytes_max", {}, shards) is None


def test_a_table_is_warned_about_once_until_it_has_room_again() -> None:
    watch, limits = FullnessWatch(), {"subjects_max": 100, "mqtt_sessions_max": 0}
    with structlog.testing.capture_logs() as lines:
        for used in (79, 80, 95, 75, 85, 69, 80):
            watch.look({"subjects": used, "mqtt_sessions": 5, "shards": []}, limits)
    assert [(line["event"], line["used"]) for line in lines] == [
        ("table_nearly_full", 80),
        ("table_recovered", 69),
        ("table_nearly_full", 80),
    ]
    assert lines[0]["limit"] == "subjects_max"


def test_evicted_snapshots_are_logged_with_how_many_and_what_to_set() -> None:
    watch = FullnessWatch()
    with structlog.testing.capture_logs() as lines:
        for evicted in (0, 0, 3, 3, 5):
            watch.look({"evicted_snapshots": evicted}, {})
    assert [(line["event"], line["count"]) for line in lines] == [("snapshots_evicted", 3), ("snapshots_evicted", 2)]
    assert "snapshots_bytes_max" in lines[0]["set"]
