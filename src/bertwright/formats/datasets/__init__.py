"""Tokenised datasets of Hugging Face `datasets`: examples, or rows of running text."""
