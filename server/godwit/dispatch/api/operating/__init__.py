"""Resources that operators manage over HTTP: tenants, their keys, and providers."""
