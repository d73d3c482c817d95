"""What becomes of a trial's records: how long names are kept, and the whole trail, exported and signed."""
