"""ModernBERT (Warner et al. 2024): its numbers, its section of the recipe, its encoder."""
