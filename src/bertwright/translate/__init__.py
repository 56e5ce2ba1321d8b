"""Command lines of other programs as recipes."""
