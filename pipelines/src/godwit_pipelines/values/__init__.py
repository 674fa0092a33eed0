"""What people and publishers write, as values: paths and numbers, or a sentence that says why not. Pure."""
