"""Tokenised data sets of Hugging Face `datasets`: examples, or rows of running text."""
