"""Operations at the location of the rows: tables are opened, read, cut to periods, checked and summed."""
