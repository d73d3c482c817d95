"""How many samples until a mean is known well enough."""
