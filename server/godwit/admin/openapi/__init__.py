"""/openapi.json: the admin port as OpenAPI 3.1. The reference page is generated from it, and tests compare the port with it."""
