"""Finds duplicate documents and paragraphs."""
