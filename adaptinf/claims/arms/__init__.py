"""Claims about arm means, their differences and winners, by method."""
