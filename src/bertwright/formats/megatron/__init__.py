"""Indexed datasets of Megatron-LM: tokenised documents."""
