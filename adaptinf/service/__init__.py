"""A trial served over HTTP: roles and calls, problems, the writer of all requests, and the server."""
