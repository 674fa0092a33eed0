"""What the jobs compute: pure functions from data frames to data frames.

Nothing here reads, writes, opens a session, takes the time or calls Python once per row. The same function serves a
whole table and the micro-batches of a stream; `lateness` matters to a stream alone.
"""
