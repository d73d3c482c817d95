"""Where a journal is kept: what a SQLite file and a PostgreSQL server each do in their own way."""
