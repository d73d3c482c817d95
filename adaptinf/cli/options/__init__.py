"""Options that commands share: of files, of a question, of a design, and of an answer."""
