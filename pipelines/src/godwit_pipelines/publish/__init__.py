"""Rows back into subjects, over a node's REST endpoint, each row one message however often Spark runs its batch.

The format is `godwit_publish`; a row's idempotency key is its place: query, batch, partition, row.
"""

from .format import PublishFormat

__all__ = ["PublishFormat"]
