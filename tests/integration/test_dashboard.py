"""The dashboard is one that Grafana's own types allow: every name and every word of it, its panels' options and fields too.

No Grafana is needed: its published schema is, and the type checker that the JavaScript client is checked with.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

DASHBOARD = Path("monitoring/grafana/godwit.json")
TSC = Path("clients/javascript/node_modules/typescript/bin/tsc")
SCHEMA = Path("console/node_modules/@grafana/schema")
PANELS = "@grafana/schema/dist/esm/raw/composable"
HEAD = f"""
import type {{ Dashboard }} from "@grafana/schema";
import type {{ Options as Stat }} from "{PANELS}/stat/panelcfg/x/StatPanelCfg_types.gen";
import type {{ Options as Timeseries, FieldConfig }} from "{PANELS}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
// Enumerations as they stand in JSON.
type Said<T> = T extends string ? `${{T}}` : T extends object ? {{ [K in keyof T]: Said<T[K]> }} : T;
// What is not said has its default.
type Part<T> = T extends object ? {{ [K in keyof T]?: Part<T[K]> }} : T;
"""
FLAGS = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext")


def check(dashboard: dict[str, Any], root: Path, folder: Path) -> str:
    """What the type checker says; nothing where all is right."""
    lines = [HEAD, f"export const dashboard: Said<Dashboard> = {json.dumps(dashboard)};"]
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            continue
        kind = panel["type"].capitalize()
        lines.append(f"export const options{panel['id']}: Part<Said<{kind}>> = {json.dumps(panel.get('options', {}))};")
        custom = panel["fieldConfig"]["defaults"].get("custom", {})
        lines.append(f"export const custom{panel['id']}: Part<Said<FieldConfig>> = {json.dumps(custom)};")
    program = folder / "dashboard.ts"
    program.write_text("\n".join(lines), encoding="utf-8")
    modules = folder / "node_modules/@grafana"
    if not modules.exists():
        modules.mkdir(parents=True)
        (modules / "schema").symlink_to(root / SCHEMA)
    command = ["node", root / TSC, *FLAGS, program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300).stdout


@pytest.fixture
def dashboard(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / DASHBOARD).read_text(encoding="utf-8"))
    return found


def test_grafanas_types_allow_it(dashboard: dict[str, Any], root: Path, tmp_path: Path) -> None:
    assert check(dashboard, root, tmp_path) == ""


def test_what_grafana_does_not_know_is_found(dashboard: dict[str, Any], root: Path, tmp_path: Path) -> None:
    stat = next(panel for panel in dashboard["panels"] if panel["type"] == "stat")
    stat["options"]["colourMode"] = "value"
    stat["fieldConfig"]["defaults"]["units"] = "none"
    dashboard["time"]["until"] = "now"
    said = check(dashboard, root, tmp_path)
    assert "colourMode" in said and "units" in said and "until" in said


def test_its_panels_have_places_of_their_own(dashboard: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
