"""Manifests, JSON and JSONL in, one self-contained page and a summary out."""
