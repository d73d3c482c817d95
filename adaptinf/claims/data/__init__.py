"""Claims about unusual data (arms that come and go, missing rewards, sums) and about outcome models."""
