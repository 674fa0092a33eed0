"""Every table of the lake by its name. The module of each layer declares its tables."""

from __future__ import annotations

from .bronze import BRONZE
from .gold import GOLD
from .ops import OPS
from .silver import SILVER
from .table import DATE, Table

TABLES: dict[str, Table] = {table.name: table for table in (*BRONZE, *SILVER, *GOLD, *OPS)}

__all__ = ["DATE", "TABLES", "Table"]
