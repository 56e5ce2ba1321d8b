"""HDF5 files in the two layouts of NVIDIA's programs."""
