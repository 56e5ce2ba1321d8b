"""Parquet files of NVIDIA's LDDL, which hold word pieces as text."""
