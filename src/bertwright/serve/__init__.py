"""Models behind a server of this machine: an interface for programs, and a page for people."""
