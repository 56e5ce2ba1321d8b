"""Reads manifests, JSON and JSONL; writes one self-contained HTML page and a summary."""
