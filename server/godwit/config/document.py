"""Shows the configuration: the current values with their sources, and the reference page of all options.

Pure texts made from the tree; the command line prints them.
"""

from __future__ import annotations

from .changes import LIVE_KEYS
from .option import Option, list_options, show
from .tree import OPTIONS, SECTIONS, Config, IssuerConfig, PatternConfig, list_values, read_value


def show_config(config: Config) -> str:
    """The current values as a TOML file that gives the same configuration, each with its source as a comment."""
    lines: list[str] = []
    for name in SECTIONS:
        lines.append(f"[{name}]")
        for found in _options_of(name):
            value = read_value(config, found.key)
            shown = hide(value) if found.is_secret and value else show(value)
            lines.append(f"{found.key.split('.')[1]} = {shown}  # {config.sources[found.key]}")
        lines.append("")
    for pattern in config.patterns:
        lines.append(f"[patterns.{show(pattern.pattern)}]")
        given = {name: value for name, value in list_values(pattern).items() if value is not None}
        lines += [f"{name} = {show(value)}" for name, value in given.items() if name != "pattern"] + [""]
    for issuer in config.issuers:
        lines.append(f"[issuers.{show(issuer.issuer)}]")
        lines += [f"{name} = {show(value)}" for name, value in list_values(issuer).items() if name != "issuer"] + [""]
    return "\n".join(lines).rstrip() + "\n"


def hide(value: object) -> str:
    """The text shown in place of a secret."""
    return '["(secret)"]' if isinstance(value, tuple) else '"(secret)"'


def describe_config() -> str:
    """The reference page, in Markdown."""
    parts = [_INTRODUCTION]
    for name, section in SECTIONS.items():
        parts.append(f"## [{name}]\n\n{section.__doc__}\n\n{_make_table(_options_of(name))}")
    options = list_options(PatternConfig, 'patterns."PATTERN"')
    parts.append(f'## [patterns."PATTERN"]\n\n{PatternConfig.__doc__}\n\n{_make_table(options, has_variable=False)}')
    options = list_options(IssuerConfig, 'issuers."ISSUER"')
    parts.append(f'## [issuers."ISSUER"]\n\n{IssuerConfig.__doc__}\n\n{_make_table(options, has_variable=False)}')
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# Configuration

Made by `godwit config doc`. Values come from defaults, then the TOML file (`--config FILE` or `GODWIT_CONFIG`), then
`GODWIT_*` variables, then flags (`--set KEY=VALUE` sets any); later ones win. `godwit config show` shows each source,
`godwit config check` checks whether a node would start. A changed value takes effect at a reload (`godwit reload`, SIGHUP) or
at the next start, as the column *change by* says."""


def _options_of(section: str) -> list[Option]:
    return [found for found in OPTIONS.values() if found.key.startswith(section + ".")]


def _make_table(options: list[Option], *, has_variable: bool = True) -> str:
    rows = ["| key | default | bounds | change by | meaning |", "|---|---|---|---|---|"]
    for found in options:
        name = found.key.rsplit(".", 1)[1]
        key = f"`{name}`<br>`{found.environment}`" if has_variable else f"`{name}`"
        change = "reload" if not has_variable or found.key in LIVE_KEYS else "restart"
        rows.append(f"| {key} | `{show(found.default)}` | {found.bound} | {change} | {found.sentence} |")
    return "\n".join(rows)
