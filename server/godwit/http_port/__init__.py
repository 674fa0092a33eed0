"""Bounds of a port that speaks HTTP: the number of its connections, and the time for which one may be silent."""
