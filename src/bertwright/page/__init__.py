"""Elements, tables and charts of pages and model cards, and the server and the files that live pages share."""
