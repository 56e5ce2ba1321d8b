"""DistilBERT (Sanh et al. 2019): its configuration, recipe section and encoder."""
