"""Case studies: the tables and figures of five papers, and real data, each run again by one command."""
