"""Detects whether operations are being traced (by a compiler or exporter), not executed."""

from __future__ import annotations

import torch


def is_traced() -> bool:
    """Whether a compiler or an exporter is tracing. Then values are not available, and whatever the host draws or
    decides would be the same in every pass."""
    return torch.compiler.is_compiling() or is_exported()


def is_exported() -> bool:
    """Whether an exporter is tracing."""
    return torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
