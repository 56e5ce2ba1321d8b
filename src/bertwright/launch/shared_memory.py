"""Sizes of shared memory in the notation of docker, podman and Azure ML (which starts docker)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def _size(size: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[bkmg]", size):
        raise ValueError('write the size of shared memory like "64g" or "512m"')
    return size


SharedMemory = Annotated[str, AfterValidator(_size)]
"""A number followed by b, k, m or g."""
