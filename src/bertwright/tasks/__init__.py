"""Tasks: what a network learns, one folder each; `task.py` is their protocol, `config.py` their union."""
