"""A trial served over HTTP: roles and calls, problems, one writer that stores requests together, a server."""
