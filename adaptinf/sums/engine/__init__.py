"""Work done where the rows are stored: tables are opened, read, divided into periods, checked and summed."""
