"""Export: from a finished model to a folder that stock `transformers` loads, verified by loading it back."""
