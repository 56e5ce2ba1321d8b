"""Labelled texts for classification: reading, tokenising, storing and loading them."""
