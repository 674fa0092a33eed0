"""What the compiled engine offers Python; godwit.engine is its only importer.

Shapes of reports and orders are those of core/src/report.rs, each a tuple that begins with its kind.
"""

from typing import Any, final

__all__ = ["Engine", "FeedbackJournal", "LoadGenerator", "check_journal"]

def check_journal(directory: str) -> list[dict[str, Any]]:
    """Every file of a journal: stream, file, first, next, rows, bytes, damaged, torn_bytes, lost, is_bent, is_missing, is_gap, is_whole.

    Raises OSError, which names the file.
    """

@final
class Engine:
    """One node; every method may be called from any thread."""

    def __new__(cls, settings_json: str) -> Engine:
        """Takes core/src/settings.rs as JSON; raises ValueError with a sentence where it does not fit."""

    def start(self) -> dict[str, object]:
        """Listens and starts the shards; OSError where a port is taken or the driver asked for does not work.

        Each listener's name and HOST:PORT, then "driver" ("io_uring" or "readiness"), "driver_reason" (why not io_uring,
        else empty), "shards" and "descriptors_max" (the process's limit, raised as far as it goes). Where there is a journal,
        "resumed": what came back from it (rows, messages, subjects, keys, sessions, missing_ranges, rows_skipped, damaged,
        arrival, took_ms, was_clean | None, said).
        """

    def report_fd(self) -> int:
        """Readable once reports are to be taken: at once where one asks something, else after 20 ms."""

    def reports(self) -> list[tuple[object, ...]]:
        """Takes all reports that wait.

        ("authorize", connection, token | None, client | None, address, is_renewal, certificate | None),
        ("ask", connection, identity, action, selector, tenant, authority, is_background),
        ("connected", connection, identity, client, address, protocol, tenant, authority),
        ("subscribed", connection, selector, outcome, position | None), ("unsubscribed", connection, selector),
        ("disconnected", connection, code, duration_ms), ("refused", address, code, reason, connection | 0, client),
        ("command_refused", connection, identity, address, code, reason, client, tenant, authority),
        ("drained",), ("shard_failed", shard, reason),
        ("journal", reason | None): the disk fails, or does no longer.
        """

    def order(self, orders: list[tuple[object, ...]]) -> None:
        """Carries out a batch; ValueError or TypeError, and none of it is carried out, where one does not fit; TimeoutError where a
        shard does not take its orders.

        ("grant", connection, identity, [(pattern, actions, verdict), …], expires_ms | None, token_id | None, tenant,
        source | None, authority),
        ("revoke", identity | None, token_id | None, code, tenant | None, authority | None), ("refuse" | "close",
        connection, code, reason), ("answer", connection, (pattern, actions, verdict)).
        """

    def publish_many(self, messages: list[tuple[str, bytes, str, bool]]) -> list[tuple[int, str]]:
        """(subject, content, kind, retain) each; answers (0, position) or (code, "")."""

    def stats(self) -> dict[str, object]:
        """The node's figures, and under "shards" each shard's as of the end of its last turn."""

    def write_stats(
        self,
        time_ms: int,
        rows: list[tuple[str, str, str, str, float, tuple[float | None, float | None, float | None, float | None]]],
    ) -> bool:
        """Rows of the journal's stream `stats`: (metric, scope, label, window, covered_s, (value, max, mean, deviation)) each;
        False where there is no journal."""

    def subjects(self, after: str, limit: int, pattern: str | None) -> list[dict[str, object]]:
        """Subjects in name order after one, as SubjectRow of core/src/report.rs."""

    def survey(
        self, pattern: str | None, search: str, sort: str, is_descending: bool, offset: int, limit: int
    ) -> dict[str, object]:
        """Subjects searched and sorted as they were a moment ago: "rows" with "rate_per_s", "total", "taken_ms", "took_ms",
        "is_partial"; sort is "subject", "rate", "messages", "bytes", "subscribers" or "last", else ValueError."""

    def connections(
        self, after: int, limit: int, search: str | None, is_behind: bool
    ) -> tuple[list[dict[str, object]], int | None]:
        """Connections after one, or from a place on, as ConnectionRow of core/src/report.rs; and the place to go on from
        when not all were looked at, which may be so with no row found."""

    def connection(self, connection: int) -> dict[str, object] | None:
        """One connection, with "stands" where it has subscriptions; None when it is no more."""

    def configure(self, settings_json: str) -> None:
        """Takes over other settings, but for those of the start; ValueError, and nothing has changed, where they do not fit."""

    def take_heard(self, max: int, bytes_max: int, with_content: bool) -> tuple[list[tuple[object, ...]], int]:
        """Accepted messages for the audit (within `bytes_max`, at least one), oldest first, and how many it has lost since start.

        (subject, position | None, time_ms, kind, identity, bytes of content, content | None, tenant, authority) each.
        """

    def purge(self, subject: str) -> tuple[int | None, bool]:
        """Delete the kept messages and snapshot of a subject; returns the number of messages, None if the subject does not exist."""

    def revoke(
        self, identity: str | None, token: str | None, code: int, tenant: str | None, authority: str | None
    ) -> tuple[int, int, int]:
        """Closes whom a revocation means; how many connections, sessions and wills that ended."""

    def drain(self, grace_ms: int, spread_ms: int) -> None:
        """Begins; the report ("drained",) says that it is done."""

    def stop(self) -> None:
        """Ends the threads and closes what is open."""

@final
class FeedbackJournal:
    """A journal of the stream `feedback`; its door is godwit.rows.feedback."""

    def __new__(cls, directory: str, node: str, run: int, age_ms_max: int, bytes_max: int) -> FeedbackJournal:
        """Begins a run; OSError where the directory cannot be used or another process has it."""

    def write(self, rows: list[Any]) -> None:
        """Returns when rows, each by the attributes of FeedbackRow in bridge/src/feedback.rs, are on the disk; OSError."""

    def close(self) -> None:
        """Ends the run."""

@final
class LoadGenerator:
    """The load generator; its door is godwit.bench.generator."""

    def __new__(cls, plan_json: str) -> LoadGenerator:
        """Takes loadgen/src/plan.rs as JSON; raises ValueError with a sentence where it does not fit."""

    def start(self) -> None:
        """Starts the native threads; OSError where one cannot be made."""

    def progress(self) -> str: ...
    def result(self) -> str:
        """Waits for the end; the shape is RunResult of loadgen/src/loadgen.rs."""

    def stop(self) -> None: ...
