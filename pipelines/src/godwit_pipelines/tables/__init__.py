"""Every table of the lake by its name. A layer's tables are declared in the module of its name; here they come together."""

from __future__ import annotations

from .bronze import BRONZE
from .ops import OPS
from .table import DATE, Table

TABLES: dict[str, Table] = {table.name: table for table in (*BRONZE, *OPS)}

__all__ = ["DATE", "TABLES", "Table"]
