"""What is said of effects within groups and by covariates."""
