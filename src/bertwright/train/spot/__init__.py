"""Notices that a machine is to be taken away, each of which leads to a checkpoint. No cloud is asked by itself."""
