"""What runs where rows are: how tables are opened, read, cut to periods, checked and added up."""
