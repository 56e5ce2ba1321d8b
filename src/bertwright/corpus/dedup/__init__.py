"""Which documents and paragraphs are repetitions."""
