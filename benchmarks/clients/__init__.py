"""What the two client libraries pay for a message: `python -m benchmarks.clients.run`."""
