"""Claims about guarantees, what they permit, and estimates from releases alone."""
