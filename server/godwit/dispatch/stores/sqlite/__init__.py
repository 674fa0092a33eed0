"""The embedded store: one SQLite file, one writer thread, separate readers."""
