"""What Kafka's client says becomes a sentence: texts are as Spark gives them."""

from __future__ import annotations

import socket

import pytest
from pyspark.errors import StreamingQueryException

from godwit_pipelines.errors import ConfigInvalid, KafkaFailed
from godwit_pipelines.progress import translate
from godwit_pipelines.source.kafka_faults import reach

CLIENT = "org.apache.kafka.common.errors."
FAILED = "[STREAM_FAILED] Query [id = f49c, runId = 1f82] terminated with exception: "
LOST = """Some data may have been lost because they are not available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.
Reason: Could not read records in offset [250, 350) for topic partition loss-2
with consumer group spark-kafka-source-aa31-executor. SQLSTATE: XXKST
=== Streaming Query ==="""


@pytest.mark.parametrize(
    "text, said",
    [
        (
            f"{CLIENT}UnknownTopicOrPartitionException: This server does not host this topic-partition. SQLSTATE: XXKST\n",
            "This server does not host this topic-partition. (UnknownTopicOrPartitionException); is it in kafka.topics",
        ),
        (
            f"{CLIENT}TimeoutException: Timed out waiting for a node assignment. Call: listNodes SQLSTATE: XXKST\n",
            "Timed out waiting for a node assignment. Call: listNodes (TimeoutException); the brokers of kafka.servers",
        ),
        (LOST, "Could not read records in offset [250, 350) for topic partition loss-2: Kafka let go of them"),
    ],
)
def test_a_query_that_kafka_ended_says_why(text: str, said: str) -> None:
    raised = translate(StreamingQueryException(FAILED + text))
    assert isinstance(raised, KafkaFailed) and str(raised).startswith(said)


def test_what_kafka_has_nothing_to_do_with_stays_as_it_is() -> None:
    error = StreamingQueryException(FAILED + "java.lang.OutOfMemoryError: Java heap space")
    assert translate(error) is error


def test_one_broker_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        alive, dead = (f"127.0.0.1:{each.getsockname()[1]}" for each in (server, gone))
        gone.close()
        reach(f"{dead}, {alive}")
        with pytest.raises(KafkaFailed, match=f"no broker can be reached: {dead}: Connection refused"):
            reach(dead)


@pytest.mark.parametrize("servers", ["", "broker", "broker:", ":9092", "broker:kafka", "broker:70000"])
def test_an_address_that_is_none_is_told(servers: str) -> None:
    with pytest.raises(ConfigInvalid, match="must be HOST:PORT"):
        reach(servers)
