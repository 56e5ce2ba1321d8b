"""Parquet files of NVIDIA's LDDL: word pieces as text."""
