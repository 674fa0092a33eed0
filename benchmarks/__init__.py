"""Measurements: goals, the runs that show them, results as data, and the charts and page made from the data."""
