"""Before a trial: power, operating characteristics, and coverage of what is planned."""
