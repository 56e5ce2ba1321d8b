"""Data of other programs, both ways: what they have made is read and brought in, and what they read is written."""
