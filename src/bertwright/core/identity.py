"""What an artifact is a function of: its stage, the version of its code, settings and inputs; hashed, its fingerprint.

What is hashed is what differs from the defaults (docs/decisions/0022), so that a new key that is off changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bertwright.core.config import fingerprinted
from bertwright.core.files import sha256_of


@dataclass(frozen=True)
class Identity:
    """What an artifact is a function of."""

    stage: str
    version: int
    """Raised when the stage's code changes its result."""
    sections: Mapping[str, Any]
    """The sections of the recipe that the stage reads, by their names."""
    inputs: Mapping[str, str]
    """Fingerprint of each input, by name."""
    extendable: bool = True
    """Whether the fields that may grow are part of it."""

    @property
    def config(self) -> dict[str, Any]:
        """Every setting that decides the result, as JSON."""
        return dict(fingerprinted(self.sections, extendable=self.extendable))

    @property
    def changed(self) -> dict[str, Any]:
        """Those settings that have not their default: all that the fingerprint knows of them."""
        return dict(fingerprinted(self.sections, extendable=self.extendable, defaults=False))

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the identity."""
        return sha256_of([self.stage, self.version, self.changed, self.inputs])
