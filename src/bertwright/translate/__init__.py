"""Translate command lines of other programs into recipes."""
