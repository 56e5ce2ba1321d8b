"""Elements, tables and charts of pages and model cards."""
