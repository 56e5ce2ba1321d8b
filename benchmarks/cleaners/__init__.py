"""How clean, how complete and how whole the text is that wikitext cleaners make of real pages."""
