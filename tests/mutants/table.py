"""`make mutants`: each broken server under verify, several seeds each, as a table. Exit code 1 if one was not judged correctly.

Owns the table: one row for each server. `--keep` puts the table into the guide, between its two comments. A run that does not
come to its end in RUN_S_MAX is a failure too, so that the whole is bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from godwit.verify.brokers import BrokerMissing
from tests.mutants.mutants import MUTANTS, ROOT, RUN_S_MAX, Mutant, count_deliveries, is_caught, try_mutant

SEEDS = 3
GUIDE = ROOT / "docs/guides/verify.md"
MARKED = re.compile(r"(?<=<!-- mutants: begin -->\n).*?(?=<!-- mutants: end -->)", re.DOTALL)
HEAD = ("server", "judged rightly", "violations found", "deliveries")


@dataclass(slots=True)
class Row:
    """One server, over its seeds."""

    name: str
    runs: int = 0
    right: int = 0
    missing: str = ""
    found: Counter[str] = field(default_factory=Counter)
    deliveries: int = 0

    @property
    def is_right(self) -> bool:
        return self.right == self.runs

    def cells(self) -> tuple[str, ...]:
        if self.missing:
            return self.name, "skipped", self.missing, ""
        return self.name, f"{self.right} of {self.runs}", self.say_found(), f"{self.deliveries:,}"

    def say_found(self) -> str:
        """The violations of all runs."""
        return ", ".join(f"{guarantee} × {count:,}" for guarantee, count in self.found.most_common()) or "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each server")
    parser.add_argument("--only", default="", help="servers with this in their name")
    parser.add_argument("--keep", action="store_true", help="put the table into the guide")
    asked = parser.parse_args()
    console = Console()
    began = time.monotonic()
    rows = [judge(mutant, asked.seeds, console) for mutant in MUTANTS if asked.only in mutant.name]
    table = Table(*HEAD, title="godwit verify against servers that break their guarantees")
    for row in rows:
        table.add_row(*row.cells(), style="" if row.is_right else "bold red")
    console.print(table)
    is_right = all(row.is_right for row in rows)
    said = "everything was judged rightly" if is_right else "not everything was judged rightly"
    console.print(f"[bold {'green' if is_right else 'red'}]{said}[/], in {time.monotonic() - began:.0f} s")
    if asked.keep and is_right:
        keep(rows)
    return 0 if is_right else 1


def judge(mutant: Mutant, seeds: int, console: Console) -> Row:
    """All runs of one."""
    row = Row(mutant.name)
    for seed in range(1, seeds + 1):
        began = time.monotonic()
        row.runs += 1
        try:
            run = asyncio.run(try_mutant(mutant, seed))
        except BrokerMissing as missing:
            row.missing, row.right = str(missing), row.runs
            break
        except TimeoutError:
            console.print(f"{mutant.name}, seed {seed}: no end in {RUN_S_MAX:.0f} s", style="red")
            continue
        is_right = is_caught(mutant, run)
        row.right += is_right
        row.found.update({guarantee.value: count for guarantee, count in run.findings.counts.items()})
        row.deliveries += count_deliveries(run)
        verdict = "judged rightly" if is_right else f"judged wrongly: {dict(run.findings.counts)}"
        console.print(f"{mutant.name}, seed {seed}: {verdict}, {time.monotonic() - began:.0f} s", highlight=False)
    return row


def keep(rows: list[Row]) -> None:
    """Writes into the guide what was found of each broker; all were judged rightly."""
    kept = [
        ("server", "violations found"),
        ("---", "---"),
        *((row.name, row.missing or row.say_found()) for row in rows),
    ]
    lines = [f"| {name} | {found} |" for name, found in kept]
    text = GUIDE.read_text(encoding="utf-8")
    assert MARKED.search(text), "the guide has a place for it"
    table = "\n" + "\n".join(lines) + "\n\n"
    GUIDE.write_text(MARKED.sub(lambda _: table, text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
