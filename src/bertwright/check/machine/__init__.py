"""Verdicts on a machine: device, precision, memory, disk, installed packages."""
