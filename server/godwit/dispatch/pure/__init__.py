"""Decisions of dispatch without I/O: plans, retries and ranks of states."""
