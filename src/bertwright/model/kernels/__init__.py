"""Kernels of our own for GPUs, in Triton: each file has a kernel, the same in plain torch, and the time that the memory
or the arithmetic of a GPU allows it.

Only these files import Triton, and others import them only inside functions: a CPU-only installation has no Triton. The
operators are registered with torch, so torch.compile passes them without a graph break (docs/decisions/0065). The name
of a kernel says what it computes, because a profile of a GPU shows only that.
"""
