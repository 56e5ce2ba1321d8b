"""What a run will take, before it starts: memory, disk, steps, tokens, hours, energy and cost. Without torch."""
