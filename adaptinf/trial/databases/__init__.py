"""The databases of a journal: operations in which SQLite files and PostgreSQL servers differ."""
