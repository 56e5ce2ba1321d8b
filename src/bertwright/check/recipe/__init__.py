"""Verdicts on a recipe with the files it names: data, vocabulary, other networks, advice, packages."""
