"""One article's wikitext to plain paragraphs."""
