"""Files of every kind to articles of plain paragraphs, piece by piece."""
