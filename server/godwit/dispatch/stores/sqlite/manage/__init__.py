"""Resources that the API manages in the embedded store, and that fan-out only reads."""
