"""The basis of every stage: artifacts, files, tasks, random numbers, errors, the log. Independent of BERT and torch."""

__version__ = "0.1.0"
"""The version of the package; here, so that any subpackage can read it without importing the public names."""
