"""Templates whose parts are made in special ways."""
