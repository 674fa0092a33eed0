"""Describes faults of Kafka in a sentence: brokers that cannot be reached before Spark waits for them for minutes, and what its client
says of a topic or of records that are not there.
"""

from __future__ import annotations

import re

from ..errors import KafkaFailed
from ..reach import find_unreachable

_SAID = re.compile(r"org\.apache\.kafka\.common\.(?:errors\.|config\.|)(\w+): ([^\n]*?)(?: SQLSTATE: \w+)?(?:\n|$)")
_LOST = re.compile(r"Reason: (Could not read records in offset [^\n]+)")
_HINTS = {
    "UnknownTopicOrPartitionException": "check its name in kafka.topics and that it exists",
    "TimeoutException": "the brokers of kafka.servers do not answer, or not under the names that they advertise",
}


def reach(servers: str) -> None:
    """Raises KafkaFailed where none of the brokers takes a connection."""
    if why := find_unreachable("kafka.servers", servers):
        raise KafkaFailed(f"no broker can be reached: {why}")


def explain(text: str) -> KafkaFailed | None:
    """The fault of Kafka that a failed query reports; None if it reports none."""
    if lost := _LOST.search(text):
        return KafkaFailed(
            f"{lost[1]}: Kafka deleted them before they were read, or the topic was recreated; "
            "kafka.fail_on_data_loss=false continues with the remaining records"
        )
    if said := _SAID.search(text):
        name, sentence = said[1], said[2].strip()
        hint = f"; {_HINTS[name]}" if name in _HINTS else ""
        return KafkaFailed(f"{sentence} ({name}){hint}")
    return None
