"""Drafts a recipe that fine-tunes a model for a task, and runs it with several seeds. Does not import torch."""
