"""Vectors of texts from a run without labels: pairs of its corpus, training, scores beside BM25, and a static table."""
