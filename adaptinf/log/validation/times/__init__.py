"""Times of rows: the repeated hour, periods and zones, and the columns of a frame that contain times."""
