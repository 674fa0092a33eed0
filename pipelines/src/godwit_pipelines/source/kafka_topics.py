"""Identifies a topic of Kafka independently of its name: a recreated topic has another id.

Owns the requests to the brokers. The id is the column `run` of each record, like the run of a journal's rows.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from ..settings import KafkaSettings
from .kafka_faults import reach

_ANSWER_MS = "30000"


def find_topics(spark: SparkSession, settings: KafkaSettings) -> dict[str, str]:
    """The id of each topic. What Kafka's client raises says which topic is not there."""
    reach(settings.servers)
    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    properties.put("bootstrap.servers", settings.servers)
    properties.put("default.api.timeout.ms", _ANSWER_MS)
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
    try:
        names = jvm.java.util.ArrayList()
        for topic in settings.topics:
            names.add(topic)
        found = client.describeTopics(names).allTopicNames().get()
        return {topic: str(found.get(topic).topicId().toString()) for topic in settings.topics}
    finally:
        client.close()
