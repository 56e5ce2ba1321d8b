"""ModernBERT (Warner et al. 2024): its configuration, recipe section and encoder."""
