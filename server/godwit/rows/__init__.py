"""Journals that are written from outside of a node, through a door of their own to the compiled engine."""
