"""The pipelines of Godwit: a source and sinks for Spark, the jobs between them, and the command that runs them.

Owns what is learnt from the journals of nodes. Never imports the server (`godwit`); what both know is generated from
protocol/events.toml into schemas.py.
"""

__version__ = "0.1.0"
