"""Claims about a log: how it was read, what its guarantee covers, and what remains of it."""
