"""A finished model in, a folder out that stock `transformers` loads, checked by loading it back."""
