"""Exams: what a trained encoder is worth, whoever trained it, on data that says so in minutes."""
