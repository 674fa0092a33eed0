"""The command line: `godwit serve`, `godwit publish`, and the other commands that COMMANDS lists.

Each command is a module, loaded only when it is called. program.py has the error sentences and exit codes.
"""

from __future__ import annotations

import importlib
import sys

import click

from .. import __version__
from .program import check_types, run

COMMANDS = {
    "serve": "godwit.cli.serve:serve",
    "publish": "godwit.cli.publish:publish",
    "tail": "godwit.cli.tail:tail",
    "send": "godwit.cli.send:send",
    "inbox": "godwit.cli.inbox:inbox",
    "receivers": "godwit.cli.imports:receivers",
    "groups": "godwit.cli.imports:groups",
    "dispatch": "godwit.cli.dispatch:dispatch",
    "config": "godwit.cli.config:config",
    "token": "godwit.cli.token:token",
    "health": "godwit.cli.health:health",
    "top": "godwit.cli.top:top",
    "revoke": "godwit.cli.operator:revoke",
    "purge": "godwit.cli.operator:purge",
    "reload": "godwit.cli.operator:reload",
    "journal": "godwit.cli.journal:journal",
    "bench": "godwit.bench:bench",
    "plan": "godwit.plan:plan",
    "verify": "godwit.verify:verify",
}
"""Command → module:attribute."""


class _Commands(click.Group):
    """Loads a command's module when it is called; `--help` needs all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if self.get_command(ctx, name) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None  # an installation without the load generator
        assert isinstance(command, click.Command)
        return check_types(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            nearest = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {nearest[0]}?" if nearest else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="godwit")
def godwit() -> None:
    """A publish/subscribe server whose clients resume exactly where they left off."""


def main() -> None:
    """The program."""
    sys.exit(run("godwit", godwit))
