"""What is wrong with Kafka, in a sentence: brokers that cannot be reached before Spark waits for them for minutes, and what its client
says of a topic or of records that are not there.
"""

from __future__ import annotations

import re
import socket

from ..errors import ConfigInvalid, KafkaFailed

_SAID = re.compile(r"org\.apache\.kafka\.common\.(?:errors\.|config\.|)(\w+): ([^\n]*?)(?: SQLSTATE: \w+)?(?:\n|$)")
_LOST = re.compile(r"Reason: (Could not read records in offset [^\n]+)")
_HINTS = {
    "UnknownTopicOrPartitionException": "is it in kafka.topics by its right name, and has somebody made it?",
    "TimeoutException": "the brokers of kafka.servers do not answer, or not under the names that they give",
}


def reach(servers: str, timeout_s: float = 5.0) -> None:
    """Raises KafkaFailed where none of `HOST:PORT,…` takes a connection, ConfigInvalid where one is none."""
    failures = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ConfigInvalid("kafka.servers", server, "must be HOST:PORT", hint="several are joined by commas")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            return
        except OSError as error:
            failures.append(f"{server.strip()}: {error.strerror or error}")
    raise KafkaFailed(f"no broker can be reached: {'; '.join(failures)}")


def explain(text: str) -> KafkaFailed | None:
    """What a failed query says of Kafka; none where it says nothing."""
    if lost := _LOST.search(text):
        return KafkaFailed(
            f"{lost[1]}: Kafka let go of them before they were read, or the topic was made anew; "
            "kafka.fail_on_data_loss=false goes on with what there is"
        )
    if said := _SAID.search(text):
        name, sentence = said[1], said[2].strip()
        hint = f"; {_HINTS[name]}" if name in _HINTS else ""
        return KafkaFailed(f"{sentence} ({name}){hint}")
    return None
