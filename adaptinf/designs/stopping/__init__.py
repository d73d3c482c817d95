"""How many samples are needed to know a mean well enough."""
