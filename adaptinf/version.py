"""The version of the package, for parts that write it into files without importing everything."""

__version__ = "0.1.0"
