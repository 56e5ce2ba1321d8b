"""From a recipe to everything that the loop needs: ranks, network, optimizer, engine, data, and where to start."""
