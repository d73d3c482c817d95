"""Times of rows: the hour that comes twice, periods and zones, and the columns of a frame that hold times."""
