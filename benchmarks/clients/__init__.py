"""The CPU cost of a received message in the two client libraries: `python -m benchmarks.clients.run`."""
