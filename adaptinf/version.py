"""The version of the package, for parts that write it into files: they need not import the whole for it."""

__version__ = "0.1.0"
