"""Signals that come before the event loop can hear them, and the end of the process."""
