"""What is said of estimates from releases, which a guarantee covers."""
