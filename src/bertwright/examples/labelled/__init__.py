"""Texts with a label each, for classification: read, tokenised, kept and drawn."""
