"""The exact law of two-arm trials with 0/1 rewards, and the tests that it gives."""
