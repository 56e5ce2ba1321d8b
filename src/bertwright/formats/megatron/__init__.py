"""Indexed data sets of Megatron-LM: tokenised documents."""
