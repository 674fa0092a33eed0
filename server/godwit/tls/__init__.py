"""TLS of the admin and dispatch ports."""
