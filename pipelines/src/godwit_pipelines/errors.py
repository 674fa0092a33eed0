"""Every error that the pipelines raise on purpose, with the exit code of the command.

PipelineError
├── ConfigInvalid     a setting or option is not valid: key, value, bound, hint; exit 2, before Spark starts
├── JournalMissing    a journal does not exist, or retention removed rows before they were read; exit 3
├── JournalBroken     a journal does not match its manifest; exit 3
├── JournalReplaced   a journal was replaced, and it is unknown which of its rows were read; exit 3
├── KafkaFailed       Kafka cannot be reached, or topics or records do not exist; exit 3
├── TableMissing      no job has written the table yet; exit 4
├── TableMismatch     a table has other columns, types or partitions than its reader or writer; exit 4
├── TableBroken       a commit or file of a table is cut or damaged; exit 4
├── CheckpointOlder   a checkpoint is older than the table that its query writes; exit 4
├── CheckpointBroken  a file of a checkpoint is missing, empty or cut; exit 4
├── TableReplaced     a table is not the one that a query has read so far; exit 4
├── PublishFailed     the node refused a message, or could not be reached; exit 5
├── DiskFailed        a file cannot be written or read: full disk, missing permission; exit 6
├── SparkMissing      Java was not found, or the Spark master does not answer; exit 7
└── LakeBusy          another process runs the job on the lake; exit 8
"""

from __future__ import annotations

EXIT_FOUND = 1
"""A job completed and found a violation, such as a missing message or an unreported gap."""
EXIT_UNEXPECTED = 70
"""An internal error; the trace shows the place. (EX_SOFTWARE of sysexits.h)"""
EXIT_STOPPED = 130
"""Somebody stopped a job before it had done its work."""
EXIT_PIPE_CLOSED = 141
"""The reader closed the output, as `head` does. (128 + SIGPIPE, as in a shell)"""
STOPPED = "godwit-pipelines: stopped; the next run continues the unfinished work"
"""The sentence for it."""


class PipelineError(Exception):
    """The base class. Catch it to catch every error that the pipelines raise on purpose."""

    exit_code = 1


class ConfigInvalid(PipelineError):
    """A setting or option is not valid. The message has the key, its source, the value, what is expected, and a hint.

    A value of None is not shown: it can be a secret.
    """

    exit_code = 2

    def __init__(self, key: str, value: object, bound: str, *, hint: str = "", source: str = "") -> None:
        self.key = key
        where = f" (from {source})" if source else ""
        after = f"; {hint}" if hint else ""
        shown = "" if value is None else f"{value!r} "
        super().__init__(f"{key}{where}: {shown}{bound}{after}")


class JournalMissing(PipelineError):
    """A journal, or a range of its rows, does not exist."""

    exit_code = 3


class JournalBroken(PipelineError):
    """A journal exists, but does not match its manifest."""

    exit_code = 3


class JournalReplaced(PipelineError):
    """The journal of a node is another one than was read before, and it is unknown which of its rows were read."""

    exit_code = 3


class KafkaFailed(PipelineError):
    """Kafka cannot be read: no broker answers, a topic does not exist, or retention removed records before they were read."""

    exit_code = 3


class TableMissing(PipelineError):
    """No job has written the table yet. The message names the job that does."""

    exit_code = 4


class TableMismatch(PipelineError):
    """A table has other columns, types or partitions than its reader or writer expects. The message has both."""

    exit_code = 4


class TableBroken(PipelineError):
    """A table's log or one of its files cannot be read. The message names the file and the remedy."""

    exit_code = 4


class CheckpointOlder(PipelineError):
    """A checkpoint ends before a batch that the query's table holds: it was restored from a copy."""

    exit_code = 4


class CheckpointBroken(PipelineError):
    """A checkpoint is not complete. The message names the file and the remedy."""

    exit_code = 4


class TableReplaced(PipelineError):
    """A table is another one than the query has read so far, or an older state of it."""

    exit_code = 4


class PublishFailed(PipelineError):
    """The node refused a message permanently, or could not be reached within the timeout."""

    exit_code = 5


class DiskFailed(PipelineError):
    """The operating system refused to write or read a file. The message has its reason."""

    exit_code = 6


class SparkMissing(PipelineError):
    """Spark cannot start: Java was not found, or the master does not answer."""

    exit_code = 7


class LakeBusy(PipelineError):
    """Another process runs the job on the lake. Two would write as one query."""

    exit_code = 8
