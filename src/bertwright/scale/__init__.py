"""A recipe at a tiny scale: its schedules keep their shape, everything is small, and it fits this machine."""
