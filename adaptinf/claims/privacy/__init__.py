"""What is said of guarantees, what they license, and estimates from releases alone."""
