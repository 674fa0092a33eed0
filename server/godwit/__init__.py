"""Godwit: publish and subscribe in which nobody ever loses their place.

Start reading at server.py (the node) or client/ (the client). Nothing heavy is imported here: starting stays quick.
"""

__version__ = "0.1.0"
