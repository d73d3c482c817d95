"""The version of the package, for modules that write it to files without importing the whole package."""

__version__ = "0.1.0"
