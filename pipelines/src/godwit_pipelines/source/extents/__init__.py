"""Extents of offsets: those whose rows are lost, and those that a condition needs."""
