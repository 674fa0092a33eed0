"""Decisions of dispatch without I/O: policies, retries and ranks of states."""
