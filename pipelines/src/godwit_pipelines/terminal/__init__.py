"""What the command has for a terminal: its standard streams, and how whatever goes wrong ends it."""
