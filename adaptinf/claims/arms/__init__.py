"""What is said of arm means, their differences and winners, by method."""
