"""/openapi.json: the admin port's contract as OpenAPI 3.1, from which the reference page is made and which the tests hold it to."""
