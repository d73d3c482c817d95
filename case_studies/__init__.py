"""Case studies: the tables and figures of six papers, and real data, each run again by one command."""
