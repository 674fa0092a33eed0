"""Measures the pipelines: how fast the journal is read, landed, and looped back live. Runs where Spark is installed."""
