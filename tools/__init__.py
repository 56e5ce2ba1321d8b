"""Programs that generate files of the package; not installed with it."""
