"""The admin port's socket: one connection's deadlines, and how many there may be."""
