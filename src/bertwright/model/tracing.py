"""Whether operations are being written down, to be run later, and not run."""

from __future__ import annotations

import torch


def is_traced() -> bool:
    """Whether a compiler or an exporter follows the operations: values cannot be looked at, and what is drawn or
    decided on the host would be the same in every pass."""
    return torch.compiler.is_compiling() or is_exported()


def is_exported() -> bool:
    """Whether an exporter follows the operations."""
    return torch.jit.is_tracing()  # type: ignore[attr-defined, no-any-return, no-untyped-call]
