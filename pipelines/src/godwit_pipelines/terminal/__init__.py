"""The command's standard streams, and how an error ends it."""
