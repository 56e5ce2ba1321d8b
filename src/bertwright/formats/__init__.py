"""Data formats of other programs: reads the files they produce and writes the files they consume."""
