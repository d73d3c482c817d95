"""What claims ask of estimates from releases."""
