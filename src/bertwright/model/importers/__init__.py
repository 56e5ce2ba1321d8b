"""Reads the weights of networks that other programs trained; one module per format of files."""
