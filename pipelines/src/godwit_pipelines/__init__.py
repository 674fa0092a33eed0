"""The pipelines of Godwit: a source and sinks for Spark, the jobs between them, and the command that runs them.

Owns everything that is computed from the journals of nodes. Never imports the server (`godwit`); both share what is generated from
protocol/events.toml into schemas.py.
"""

__version__ = "0.1.0"
