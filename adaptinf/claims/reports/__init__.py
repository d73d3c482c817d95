"""What a report and its pictures say of a log and a result, beside what the table says."""
