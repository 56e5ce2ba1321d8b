"""Sizes of shared memory, as docker, podman and Azure ML (which starts docker) write them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def _size(size: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[bkmg]", size):
        raise ValueError('sizes of shared memory are written as "64g" or "512m"')
    return size


SharedMemory = Annotated[str, AfterValidator(_size)]
"""A number and b, k, m or g."""
