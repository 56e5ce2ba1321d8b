"""Where weights live and how gradients become an update: one file an engine."""
