"""Masked-language modelling, with sentence pairs if the examples are pairs."""
