"""Freed memory stays with the process, and only where somebody asked for it."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import torch
from bertwright.model.device import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(25_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
can = keep_freed_memory()
faults()  # small blocks settle beside the large one first
print(can, given_back, faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other C libraries")
def test_a_tensor_of_a_hundred_megabytes_finds_the_memory_of_the_one_before() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    can, given_back, kept = ended.stdout.split()
    if can == "False":
        pytest.skip("this C library has no mallopt")
    assert int(given_back) > 2000 and int(kept) < int(given_back) / 4
