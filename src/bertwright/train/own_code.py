"""The code of bertwright as it is installed here, file by file, so that ranks with different code are detected.

The version alone would not do: two commits, or an installation that somebody edited, may have the same one.
"""

from __future__ import annotations

from pathlib import Path

from bertwright.core.files import sha256

PACKAGE = Path(__file__).parents[1]


def own_code(package: Path = PACKAGE) -> dict[str, str]:
    """The first 12 hexadecimal digits of the SHA-256 of each Python file, by its path in the package.

    Takes about 0.05 s of a processor for 600 files. Raises `OSError` if one cannot be read.
    """
    return {path.relative_to(package).as_posix(): sha256(path)[:12] for path in sorted(package.rglob("*.py"))}
