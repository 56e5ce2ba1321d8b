"""Who watches a training: programs that show its rows of metrics, one file each. None unless a recipe names it."""
