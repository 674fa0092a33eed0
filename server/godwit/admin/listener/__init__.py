"""The admin port's socket: the timeouts of a connection, and the number of connections."""
