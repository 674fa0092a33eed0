"""Templates: Liquid in a child process with limits, and the content rendered from it."""
