"""Named by an entry point that no recipe uses."""

raise RuntimeError("imported, although no recipe names it")
