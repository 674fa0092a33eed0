"""Commands, replies and pushes as values, and their two encodings (json, binary)."""
