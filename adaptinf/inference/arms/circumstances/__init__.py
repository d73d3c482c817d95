"""What the rounds of a log may ask of arm means: units that come back, gaps, arms that come and go."""
