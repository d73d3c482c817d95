"""The exact distribution of two-arm trials with 0/1 rewards, and tests based on it."""
