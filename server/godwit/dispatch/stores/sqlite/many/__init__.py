"""Work of many notifications at once in the embedded store."""
