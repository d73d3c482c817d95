"""What runs where the rows are: tables are opened, read, cut to periods, checked and summed."""
