"""Answers of fine-tuned models to texts, questions and words without labels, in the format of the data."""
