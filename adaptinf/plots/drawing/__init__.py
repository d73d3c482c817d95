"""How it is drawn: style, rows of terms, files with the same bytes every time."""
