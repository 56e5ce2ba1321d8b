"""A recipe at a tiny scale: the shape of its schedules, with little of everything, on what this machine has."""
