"""A class or a number for each text or pair of texts."""
