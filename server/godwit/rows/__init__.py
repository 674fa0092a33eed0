"""Journals that are written outside of a node, over a separate interface to the compiled engine."""
