"""Text and vocabulary to training batches: token store, plans, and the loader that turns them into masked examples."""
