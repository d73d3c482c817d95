"""Valid inference for data that were gathered adaptively, with or without differential privacy."""
