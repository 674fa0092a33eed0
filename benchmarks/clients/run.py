"""Measures what the two client libraries pay for a received message: CPU of the client's process, a message, in microseconds.

    python -m benchmarks.clients.run [--rounds 9] [--messages 60000] [--encoding json] [--compare COMMIT]

A node of this checkout holds the messages; each client reads them all, one subscription and nothing beside it. With JSON a
bare loop over the client's WebSocket library, which parses and counts, takes turns with it: the baseline. With --compare the
clients of that commit take turns, too, and their ratio is given (1 and more: these are faster).
Writes benchmarks/results/clients/receive.json."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from godwit.bench.result import describe_machine, find_commit
from godwit.bench.targets import REPOSITORY
from godwit.client import Client
from tests.node_process import running_node

HERE = Path(__file__).parent
RESULT = HERE.parent / "results" / "clients" / "receive.json"
SUBJECT = "/readings/one"
PADDING = "x" * 80  # a message of about a hundred bytes
WARM = 0.25  # of the messages, before the measurement: what is compiled while it runs has been
TOGETHER = 500  # publishes without an answer

THIS, BARE = "this", "bare"


@dataclass(frozen=True)
class Library:
    """How one of them is started: `words` come before the URL, and `root` is its folder."""

    name: str
    words: tuple[str, ...]
    environment: dict[str, str]


def libraries(root: Path, program: str = "receive") -> list[Library]:
    folder = next(each for each in (root / "clients/javascript", root / "client") if (each / "src").exists())
    python = (sys.executable, str(HERE / f"{program}.py"))
    return [
        Library("python", python, {"PYTHONPATH": str(root / "server")}),
        Library("javascript", ("node", str(HERE / f"{program}.mjs"), str(folder)), {}),
    ]


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit, with the packages of this checkout's JavaScript client."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", str(REPOSITORY), "archive", commit], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        for client in ("clients/javascript", "client"):
            if (Path(folder) / client / "src").exists():
                (Path(folder) / client / "node_modules").symlink_to(REPOSITORY / "clients/javascript/node_modules")
        yield Path(folder)


async def fill(url: str, count: int) -> None:
    async with Client(url) as client:
        for first in range(0, count, TOGETHER):
            numbers = range(first, min(first + TOGETHER, count))
            await asyncio.gather(*(client.publish(SUBJECT, {"number": n, "padding": PADDING}) for n in numbers))


def receive(library: Library, url: str, count: int, encoding: str) -> float:
    words = [*library.words, url, SUBJECT, str(count), str(int(count * WARM)), encoding]
    done = subprocess.run(
        words, env=os.environ | library.environment, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    return float(done.stdout)


async def measure(
    versions: dict[str, list[Library]], rounds: int, count: int, encoding: str
) -> dict[str, dict[str, list[float]]]:
    """The rounds of each version of each library."""
    found: dict[str, dict[str, list[float]]] = {}
    limits = {"limits.log_messages_max": count, "limits.log_age_ms_max": 86_400_000}
    async with running_node(limits) as node:
        await fill(node.url, count)
        for number in range(rounds):
            names = list(versions)
            for name in names if number % 2 == 0 else names[::-1]:  # none always goes first
                for library in versions[name]:
                    took = await asyncio.to_thread(receive, library, node.url, count, encoding)
                    found.setdefault(library.name, {}).setdefault(name, []).append(took)
    return found


def main() -> None:
    arguments = parse_arguments()
    with ExitStack() as stack:
        versions = {THIS: libraries(REPOSITORY)}
        if arguments.encoding == "json":
            versions[BARE] = libraries(REPOSITORY, "bare")
        if arguments.compare:
            versions[arguments.compare] = libraries(stack.enter_context(checkout(arguments.compare)))
        found = asyncio.run(measure(versions, arguments.rounds, arguments.messages, arguments.encoding))
    outcome = {
        "commit": find_commit(),
        "compared_with": arguments.compare,
        "encoding": arguments.encoding,
        "messages": arguments.messages,
        "machine": describe_machine(),
        "clients": {library: describe(by_version) for library, by_version in found.items()},
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(outcome, indent=1) + "\n")
    print(json.dumps(outcome["clients"], indent=1))


def describe(by_version: dict[str, list[float]]) -> dict[str, Any]:
    """CPU of a message in microseconds; the lowest of the rounds, which other processes disturbed least."""
    medians = {name: statistics.median(took) for name, took in by_version.items()}
    least = {name: min(took) for name, took in by_version.items()}
    described: dict[str, Any] = {
        "cpu_us_median": {name: round(value, 2) for name, value in medians.items()},
        "cpu_us_least": {name: round(value, 2) for name, value in least.items()},
        "rounds": {name: [round(each, 2) for each in took] for name, took in by_version.items()},
    }
    if BARE in by_version:
        ratios = [mine / bare for mine, bare in zip(by_version[THIS], by_version[BARE], strict=True)]
        described["over_bare"] = {
            "median": round(statistics.median(ratios), 2),
            "rounds": [round(each, 2) for each in ratios],
        }
    for name in medians.keys() - {THIS, BARE}:
        described["ratio_of_medians"] = round(medians[name] / medians[THIS], 3)
        described["ratio_of_least"] = round(least[name] / least[THIS], 3)
    return described


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.clients.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="of each client; default: %(default)s")
    parser.add_argument("--messages", type=int, default=60_000, help="default: %(default)s")
    parser.add_argument("--encoding", choices=["json", "binary"], default="json")
    parser.add_argument("--compare", default="", metavar="COMMIT", help="measure the clients of this commit, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
