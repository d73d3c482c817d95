"""Pages of a trial that is served, for browsers: views by role, their pictures, files, forms and visits."""
