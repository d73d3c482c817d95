"""Claims about effects within groups and by covariates."""
