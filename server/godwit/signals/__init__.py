"""Signals that come before the event loop can hear them."""
