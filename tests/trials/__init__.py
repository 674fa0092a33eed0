"""Trials: a node under random load and faults; independent code compares what each client received with what was published."""
