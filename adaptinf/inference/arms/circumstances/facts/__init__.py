"""What the claims on data out of the ordinary ask of a log."""
