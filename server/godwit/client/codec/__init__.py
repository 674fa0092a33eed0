"""What is asked and told, as values (command, reply, push), and how each wire writes it (json, binary)."""
