"""DistilBERT (Sanh et al. 2019): its numbers, its section of the recipe, its encoder."""
