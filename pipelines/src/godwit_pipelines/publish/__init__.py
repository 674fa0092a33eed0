"""Publishes rows over a node's HTTP endpoint. Each row is one message, however often Spark runs its batch.

The format is `godwit_publish`. A row's idempotency key is made of query, batch, partition and row number.
"""

from .format import PublishFormat

__all__ = ["PublishFormat"]
