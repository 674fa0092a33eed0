"""Templates: Liquid in a child process with limits, and what is rendered from it."""
