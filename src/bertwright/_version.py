"""The version alone, so that every room may read it without importing the package's public names."""

__version__ = "0.1.0"
