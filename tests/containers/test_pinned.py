"""Everything that the images install has its version in constraints.txt, or a new release would change them."""

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CUDA = ("nvidia-", "cuda-", "triton")
"""Beginnings of the names of what comes with torch's wheel for CUDA, in the versions that this wheel asks for."""


def required(package: str, extras: set[str], known: set[tuple[str, str]]) -> Iterator[str]:
    """What a package with these extras brings with it on this machine; `known` collects what was visited."""
    for extra in sorted({"", *extras}):
        if (package, extra) in known:
            continue
        known.add((package, extra))
        for requirement in map(Requirement, metadata.requires(package) or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                name = canonicalize_name(requirement.name)
                yield name
                yield from required(name, requirement.extras, known)


def test_all_that_the_image_installs_is_pinned() -> None:
    """With torch's wheel for processors; what its wheel for CUDA brings with it, test_resolve.py looks at."""
    dockerfile = (ROOT / "container" / "Dockerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', dockerfile)
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    found = set(required("bertwright", set(extras.split(",")), set()))
    assert {"torch", "transformers", "s3fs"} <= found
    without = found - {canonicalize_name(name) for name in pins}
    assert not {name for name in without if not name.startswith(CUDA)}
