"""`make sabotage`: each broken broker under verify, several seeds each, as a table. Exit code 1 when one was not caught."""

from __future__ import annotations

import asyncio
import sys
import time

from rich.console import Console
from rich.table import Table

from godwit.verify.brokers import BrokerMissing
from tests.sabotage.culprits import CULPRITS, Culprit, is_caught, try_culprit

SEEDS = (1, 2, 3)


def main() -> int:
    console = Console()
    table = Table(title="godwit verify against brokers that break their promises")
    for column in ("broker", "seed", "found", "the shortest history begins", "deliveries", "s"):
        table.add_column(column)
    missed = 0
    for culprit in CULPRITS:
        for seed in SEEDS:
            missed += not _add_row(table, culprit, seed)
            console.print(f"{culprit.name}, seed {seed}: done", highlight=False, style="dim")
    console.print(table)
    console.print("[bold red]not everything was caught[/]" if missed else "[bold green]everything was caught[/]")
    return 1 if missed else 0


def _add_row(table: Table, culprit: Culprit, seed: int) -> bool:
    began = time.monotonic()
    try:
        scene = asyncio.run(try_culprit(culprit, seed))
    except BrokerMissing as missing:
        table.add_row(culprit.name, str(seed), "left out", str(missing), "", "")
        return True
    is_right, shortest = is_caught(culprit, scene), scene.findings.shortest()
    found = ", ".join(f"{promise.value} × {count}" for promise, count in scene.findings.counts.items()) or "nothing"
    verdict = "[green]✓[/]" if is_right else "[bold red]✗[/]"
    delivered = sum(subscriber.witness.counts.messages for subscriber in scene.subscribers)
    sentence = shortest.sentence if shortest is not None else "everything was in order"
    table.add_row(
        culprit.name, str(seed), f"{verdict} {found}", sentence, f"{delivered:,}", f"{time.monotonic() - began:.0f}"
    )
    return is_right


if __name__ == "__main__":
    sys.exit(main())
