"""The command `godwit plan [FILE]`: measures, predicts, and prints text or JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..bench.command import show_progress
from ..config.load import read_file
from .check import check_prediction
from .machine import Machine, MachineInvalid, read_machine
from .measure import measure_machine
from .report import describe_plan, show_plan
from .workload import Budget, Workload, read_workload

Command = Callable[..., Any]


def field_options(command: Command) -> Command:
    """A flag for each field of a workload and of a machine."""
    for kind in (Budget, Workload):
        for found in reversed(dataclasses.fields(kind)):
            flag = "--" + found.name.replace("_", "-")
            help_text = f"{found.metadata['sentence']} Default: {found.default:,}."
            if isinstance(found.default, bool):
                option = click.option(flag, found.name, is_flag=True, default=None, help=found.metadata["sentence"])
            else:
                option = click.option(flag, found.name, type=type(found.default), default=None, help=help_text)
            command = option(command)
    return command


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@field_options
@click.option("--figures", type=click.Path(path_type=Path), help="Use the measurements in this file; do not measure.")
@click.option("--keep", type=click.Path(path_type=Path), help="Save the measurements to this file.")
@click.option(
    "--driver", default="auto", type=click.Choice(["auto", "io_uring", "readiness"]), help="The node's driver."
)
@click.option("--check", is_flag=True, help="Run the workload for some seconds and compare it with the prediction.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def plan(
    file: Path | None, figures: Path | None, keep: Path | None, driver: str, check: bool, as_json: bool, **flags: Any
) -> None:
    """Measure this machine (less than a minute) and predict its capacity.

    FILE is a TOML file with the tables `workload` and `machine`; flags override it.
    """
    document, key_lines = read_file(file, "FILE") if file else ({}, None)
    workload, budget = read_workload(document, flags, key_lines)
    machine = _read_figures(figures) if figures else measure_machine(driver, show_progress)
    if keep is not None:
        keep.write_text(json.dumps(machine.describe(), indent=1) + "\n")
    compared = check_prediction(workload, machine, show_progress) if check else None
    show_progress("")
    described = describe_plan(workload, budget, machine, compared)
    if as_json:
        click.echo(json.dumps(described, indent=1))
    else:
        show_plan(described)
    if compared is not None and not all(one.is_near for one in compared):
        sys.exit(1)


def _read_figures(file: Path) -> Machine:
    try:
        return read_machine(json.loads(file.read_text(encoding="utf-8")))
    except MachineInvalid as error:
        raise MachineInvalid(f"{file}: {error}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise MachineInvalid(f"{file} cannot be read: {error}") from None
