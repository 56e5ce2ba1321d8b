"""A page that has a small model inside: one HTML file, which any browser opens and which asks no network."""
