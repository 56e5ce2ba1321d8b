"""Reading files of every supported format, piece by piece, into articles of plain paragraphs."""
