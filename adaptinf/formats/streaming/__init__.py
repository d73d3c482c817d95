"""Files too large for memory: read line by line, written to Parquet in batches."""
