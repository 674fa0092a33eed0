"""Godwit: a publish/subscribe server whose clients resume exactly where they left off.

Start reading at server.py (the node) or client/ (the client). No large module is imported here, so that the start is
quick.
"""

__version__ = "0.1.0"
