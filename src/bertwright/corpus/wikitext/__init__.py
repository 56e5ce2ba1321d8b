"""Conversion of one article's wikitext to plain paragraphs."""
