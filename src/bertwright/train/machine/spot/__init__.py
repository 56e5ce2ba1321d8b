"""Notices that a machine will be taken away, each of which triggers a checkpoint. No cloud is queried unless
the recipe names it."""
