"""Tables in the open Delta format without Java connectors: written exactly once, read as they stand and as they grow.

Owns files and commits; which tables there are is tables/'s. Only plain Delta is written, so that any reader of the format will do.
"""

from .commits import add_columns, is_table
from .format import DeltaFormat
from .table_files import read_table
from .writing import append, merge, replace, replace_since

__all__ = ["DeltaFormat", "add_columns", "append", "is_table", "merge", "read_table", "replace", "replace_since"]
