"""The sources of rows: the journals of nodes (`godwit`), and Kafka with the same columns.

The journals are a data source of Spark's Python API that yields Arrow record batches; session.register_all registers it.
"""

from .journal import JournalSource

__all__ = ["JournalSource"]
