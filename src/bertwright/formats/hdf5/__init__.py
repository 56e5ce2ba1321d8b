"""HDF5, in the two forms of NVIDIA's programs."""
