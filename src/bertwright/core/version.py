"""The package version, in its own module so that any subpackage can read it without importing the public names."""

__version__ = "0.1.0"
