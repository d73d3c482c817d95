"""How many samples are needed to estimate a mean precisely enough."""
