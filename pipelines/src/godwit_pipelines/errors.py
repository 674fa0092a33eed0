"""Everything that the pipelines raise on purpose, with the exit code that the command gives it.

PipelineError
├── ConfigInvalid     the operator's mistake: key, value, bound, hint; exit 2 before Spark starts
├── JournalMissing    a journal that is not there, or whose rows were let go by retention; exit 3
├── JournalBroken     a journal that cannot be read as its manifest says; exit 3
├── JournalReplaced   a journal of which nobody can tell which rows were read; exit 3
├── KafkaFailed       brokers, topics or records of Kafka that are not there; exit 3
├── TableMissing      a table that no job has written yet; exit 4
├── TableMismatch     a table has other columns, types or partitions than its reader or writer; exit 4
├── TableBroken       a table of which a commit or a file was cut or damaged; exit 4
├── CheckpointOlder   a checkpoint that is older than the table its query writes; exit 4
├── CheckpointBroken  a checkpoint of which a file is missing, empty or cut; exit 4
├── TableReplaced     a table that is not the one that a query has read so far; exit 4
├── PublishFailed     a node refused what a job publishes, or could not be reached; exit 5
├── DiskFailed        a file cannot be written or read: a full disk, no rights; exit 6
├── SparkMissing      no Java to run Spark with, or no master that answers; exit 7
└── LakeBusy          another process runs the job on the lake; exit 8
"""

from __future__ import annotations

EXIT_FOUND = 1
"""A job did its work and found what must not be: a hole, a gap that nobody was told of."""
EXIT_UNEXPECTED = 70
"""What nobody expected happened; the trace says where. (EX_SOFTWARE of sysexits.h)"""
EXIT_STOPPED = 130
"""Somebody stopped a job before it had done its work."""
EXIT_PIPE_CLOSED = 141
"""Whoever read the output closed it, as `head` does. (128 + SIGPIPE, as a shell says it)"""
STOPPED = "godwit-pipelines: stopped; the next run continues the unfinished work"
"""What is said then."""


class PipelineError(Exception):
    """The root: catch this to catch everything that the pipelines raise on purpose."""

    exit_code = 1


class ConfigInvalid(PipelineError):
    """A configuration value that cannot be used: which, where it came from, what would be accepted, what to try."""

    exit_code = 2

    def __init__(self, key: str, value: object, bound: str, *, hint: str = "", source: str = "") -> None:
        self.key = key
        where = f" (from {source})" if source else ""
        after = f"; {hint}" if hint else ""
        super().__init__(f"{key}{where}: {value!r} {bound}{after}")


class JournalMissing(PipelineError):
    """A journal, or a range of its rows, is not there."""

    exit_code = 3


class JournalBroken(PipelineError):
    """A journal is there and cannot be read as its manifest says."""

    exit_code = 3


class JournalReplaced(PipelineError):
    """Under a node's name there is another journal than was read, and nothing tells which of its rows were."""

    exit_code = 3


class KafkaFailed(PipelineError):
    """Kafka cannot be read: no broker answers, a topic is not there, records were let go of before they were read."""

    exit_code = 3


class TableMissing(PipelineError):
    """No job has written the table yet; says which one does."""

    exit_code = 4


class TableMismatch(PipelineError):
    """A table has other columns, types or partitions than who reads or writes it; says both."""

    exit_code = 4


class TableBroken(PipelineError):
    """A table's log or one of its files cannot be read; says which, and what to do."""

    exit_code = 4


class CheckpointOlder(PipelineError):
    """A checkpoint ends before a batch that the table of its query holds: it was put back from a copy."""

    exit_code = 4


class CheckpointBroken(PipelineError):
    """A checkpoint is not whole; says which file, and what to do."""

    exit_code = 4


class TableReplaced(PipelineError):
    """Under a table's name there is another one than was read, or an older state of it."""

    exit_code = 4


class PublishFailed(PipelineError):
    """A node refused a message for good, or could not be reached in the time given."""

    exit_code = 5


class DiskFailed(PipelineError):
    """The system refused to write or read a file; says what it said."""

    exit_code = 6


class SparkMissing(PipelineError):
    """Spark cannot begin: there is no Java, or the master does not answer."""

    exit_code = 7


class LakeBusy(PipelineError):
    """Another process runs the job on the lake; both would write as one query."""

    exit_code = 8
