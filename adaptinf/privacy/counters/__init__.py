"""Running sums that are released again and again."""
