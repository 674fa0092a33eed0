"""What the compiled engine offers Python; godwit.engine is its only importer.

Shapes of reports and orders are those of core/src/report.rs, each a tuple that begins with its kind.
"""

class Engine:
    def __init__(self, settings_json: str) -> None:
        """Takes core/src/settings.rs as JSON; raises ValueError with a sentence where it does not fit."""

    def start(self) -> dict[str, object]:
        """Listens and starts the shards: {"client": HOST:PORT, "driver", "driver_reason"}; OSError where a port is taken."""

    def report_fd(self) -> int:
        """Readable while reports wait."""

    def reports(self) -> list[tuple[object, ...]]:
        """Takes all reports that wait."""

    def order(self, orders: list[tuple[object, ...]]) -> None: ...
    def publish_many(self, messages: list[tuple[str, bytes, str, bool]]) -> list[tuple[int, str]]:
        """(subject, content, kind, retain) each; answers (0, position) or (code, "")."""

    def stats(self) -> dict[str, object]: ...
    def subjects(self, after: str, limit: int, pattern: str | None) -> list[dict[str, object]]: ...
    def connections(self, after: int, limit: int, search: str | None) -> list[dict[str, object]]: ...
    def drain(self, grace_ms: int, spread_ms: int) -> None:
        """Begins; the report ("drained",) says that it is done."""

    def stop(self) -> None:
        """Ends the threads and closes what is open."""

class Swarm:
    """The load generator; its door is godwit.bench.generator."""

    def __init__(self, plan_json: str) -> None:
        """Takes swarm/src/plan.rs as JSON; raises ValueError with a sentence where it does not fit."""

    def start(self) -> None:
        """Starts the native threads; OSError where one cannot be made."""

    def progress(self) -> str: ...
    def result(self) -> str:
        """Waits for the end; the shape is RunResult of swarm/src/swarm.rs."""

    def stop(self) -> None: ...
