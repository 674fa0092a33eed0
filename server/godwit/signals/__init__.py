"""Signals before the event loop handles them, and the end of the process."""
