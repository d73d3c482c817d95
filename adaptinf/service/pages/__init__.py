"""Pages of a served trial for browsers: views by role, with pictures, files, forms and visits."""
