"""The README's figures: made from outcomes, between their resume tokens, with the best rival named."""

from __future__ import annotations

from typing import Any

from benchmarks.readme import build_figures, put_figures

MACHINE = {"cpu": "x", "cores": 2, "system": "Linux", "kernel": "6"}


def outcome(**medians: float) -> dict[str, Any]:
    servers = {name.replace("_", "-"): {"median": {"cpu_us_per_delivery": value}} for name, value in medians.items()}
    return {"machine": MACHINE, "servers": servers}


def test_the_best_rival_is_named_and_no_variant_of_ours_is_a_rival() -> None:
    figures = build_figures({"fanout": outcome(godwit=4.0, godwit_readiness=1.0, baseline=4.5, slow=9.0, fast=6.25)})
    assert "CPU per delivery, µs | 4 | 4.5 | 6.25 (fast) |" in figures


def test_what_was_not_measured_is_a_dash() -> None:
    assert build_figures({}) == ""
    assert "µs | 4 | – | – |" in build_figures({"fanout": outcome(godwit=4.0)})


def test_only_what_is_between_the_resume_tokens_is_made() -> None:
    readme = "before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n"
    made = put_figures(readme, {"fanout": outcome(godwit=4.0)})
    assert made.startswith("before\n<!-- figures -->\nMeasured on x") and made.endswith("<!-- /figures -->\nafter\n")
    assert put_figures(made, {}) == "before\n<!-- figures -->\n<!-- /figures -->\nafter\n"
