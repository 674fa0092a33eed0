"""The configuration: one typed tree (tree.py), loaded with provenance (load.py), shown and documented (document.py)."""

from .document import describe_config, show_config
from .load import build_config, load_config
from .option import Address
from .tree import AccessConfig, Config, PatternConfig

__all__ = [
    "AccessConfig",
    "Address",
    "Config",
    "PatternConfig",
    "build_config",
    "describe_config",
    "load_config",
    "show_config",
]
