"""The pipelines' part of docs/benchmark-results.md, from benchmarks/results/pipelines. Pure; needs no Spark."""

from __future__ import annotations

from typing import Any

Results = dict[str, Any]
_BOUNDS = {
    "source": "≥ 400,000 rows/s",
    "land": "≥ 200,000 rows/s",
    "audit": "≥ 500,000 ranges/s",
    "live": "≤ 300 ms",
    "ohlc": "≤ 1,500 ms",
}
_BOUNDS |= {"orderly": _BOUNDS["audit"], "larger": _BOUNDS["audit"]}
_SENTENCES = {
    "source": "the journal read as a stream, with checksums verified",
    "land": "the journal landed in Delta, exactly once",
    "audit": "{ranges:,} ranges with faults audited, including all tables of the audit",
    "orderly": "{ranges:,} ranges without a fault, the same way",
    "larger": "{ranges:,} ranges with faults, the same way",
    "live": "from publish to the subscriber by way of Spark, 2,000 messages a second, median",
    "ohlc": "from the newest value of a 1 s bar to the bar's subscriber, 2,000 values a second, median",
}


def describe_pipelines(io: Results, audit: Results, explanations: dict[str, str]) -> list[str]:
    """The section's lines: a table of goals, how it was measured, and why where one is not met."""
    found = {**io, **({"audit": audit} if audit else {})}
    found |= {name: audit[name] | {"goal": audit["goal"]} for name in ("orderly", "larger") if name in audit}
    lines = ["## The pipelines", "", "| what | must reach | median | rounds | |", "|---|---|---|---|---|"]
    unmet = []
    for name, sentence in _SENTENCES.items():
        if name not in found:
            lines.append(f"| {name} | {_BOUNDS[name]} | not measured | | |")
            continue
        bound, value, spread, is_met = _read(name, found[name])
        unmet += [] if is_met else [name]
        lines.append(
            f"| {sentence.format(**found[name])} | {bound} | {value} | {spread} | {'met' if is_met else '**not met**'} |"
        )
    lines += ["", *_describe_method(found)]
    for name in unmet:
        lines += ["", f"**{name}**: {explanations.get(f'pipelines-{name}', 'not yet explained.').strip()}"]
    return lines


def _read(name: str, result: Results) -> tuple[str, str, str, bool]:
    """The bound, the median, the rounds, and whether it is met."""
    goal = result["goal"]
    if "p50_ms" in result:
        return _BOUNDS[name], f"{result['p50_ms']:,} ms", f"p99 {result['p99_ms']:,} ms", result["p50_ms"] <= goal
    key = "ranges_per_s" if "ranges_per_s" in result else "rows_per_s"
    low, high = min(result["rounds"]), max(result["rounds"])
    return _BOUNDS[name], f"{result[key]:,}", f"{low:,} – {high:,}", result[key] >= goal


def _describe_method(found: Results) -> list[str]:
    left_out = [f"of {name} {len(each['left_out'])}" for name, each in found.items() if "left_out" in each]
    lines = [
        "Warm sessions on two cores (`local[2]`), messages of 200 random bytes, ranges of 30 messages on 2,000 subjects. The first",
        f"rounds, in which Java compiles, are left out: {', '.join(left_out) or 'one'}. In the last two rows the node, its publisher and",
        "its subscriber share the two cores with Spark. Measured with `python -m benchmarks.pipelines.measure` and `.audit`.",
        "",
    ]
    unchecked = found.get("source", {}).get("unchecked_rows_per_s")
    if unchecked:
        lines.append(f"- Without checksums: {unchecked:,} rows/s.")
    lines += _describe_more(found)
    by_cpu = [
        f"{name} {result[key]:,}"
        for name, result in found.items()
        for key in ("rows_per_cpu_s", "ranges_per_cpu_s")
        if key in result
    ]
    if by_cpu:
        loads = [result.get("machine", result)["load_before"] for result in found.values() if "cold" in result]
        lines += [
            f"- Per second of CPU, workers and Java together: {', '.join(by_cpu)}. These matter more than the rates when the load",
            f"  average before a run was above 1; it was {', '.join(f'{load:g}' for load in loads)}.",
        ]
    cold = [f"{name} {found[name]['cold']:,}" for name in ("source", "land", "audit") if "cold" in found.get(name, {})]
    if cold:
        lines.append(f"- Cold, in the first round of a session: {', '.join(cold)} a second.")
    return lines


def _describe_more(found: Results) -> list[str]:
    """What was measured beside the goals' figures, in the same sessions."""
    longer, audit = found.get("source", {}).get("longer"), found.get("audit", {})
    lines = []
    if longer:
        lines.append(
            f"- A journal of {longer['rows']:,} rows, where starting matters less: {longer['rows_per_s']:,} rows/s, "
            f"{longer['rows_per_cpu_s']:,} per second of CPU."
        )
    if "larger" in audit:
        lines.append(
            f"- The goal of the audit names no size; the explanation below is about {audit['ranges']:,} ranges with faults."
        )
    if "baseline" in audit:
        baseline = audit["baseline"]
        lines.append(
            f"- A baseline that only compares each of {baseline['ranges']:,} ranges with the one before: "
            f"{baseline['ranges_per_s']:,} ranges/s, {baseline['ranges_per_s'] / audit['ranges_per_s']:.1f} × the audit."
        )
    return lines
