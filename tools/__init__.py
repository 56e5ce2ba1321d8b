"""What makes files of the package; not installed with it."""
