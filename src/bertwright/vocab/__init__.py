"""Vocabularies: WordPiece trained on the corpus, or a given vocab.txt checked against it."""
