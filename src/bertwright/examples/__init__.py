"""Text and vocabulary to training batches: token store, plans, and the draw that turns them into masked examples."""
