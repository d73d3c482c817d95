"""What is said of data out of the ordinary: arms that come and go, rewards that are missing, sums, ratios."""
