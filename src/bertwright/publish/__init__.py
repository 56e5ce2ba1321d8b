"""Sends an exported model to a remote that the user names: the hub, or a registry of MLflow or Azure ML."""
