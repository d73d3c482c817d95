"""Claims about guarantees, what they license, and estimates from releases alone."""
