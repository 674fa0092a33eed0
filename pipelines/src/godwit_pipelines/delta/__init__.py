"""Delta tables without Java connectors: written exactly once, read as a batch and as a stream.

Owns files and commits; tables/ owns which tables exist. Only plain Delta is written, so that any reader of the format works.
"""

from .commits import add_columns, is_table
from .format import DeltaFormat
from .table_files import read_table
from .writing import append, merge, replace, replace_since

__all__ = ["DeltaFormat", "add_columns", "append", "is_table", "merge", "read_table", "replace", "replace_since"]
