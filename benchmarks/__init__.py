"""MEASURES: goals, the runs that show them, results as data, charts and the page made from the data."""
