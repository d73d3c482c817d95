"""Lower bounds on epsilon from the outputs of designs, mechanisms and counters."""
