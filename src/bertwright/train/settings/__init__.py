"""The recipe of a training resolved against its data: phases, identity, what may change. Imports no torch."""
