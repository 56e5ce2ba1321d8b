"""This installation of bertwright as a wheel, for new machines and images: no package index offers bertwright."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator, Set
from importlib import metadata
from pathlib import Path

from bertwright.core import __version__
from bertwright.core.errors import MissingExtraError
from bertwright.core.files import folders_below

WHEEL = f"bertwright-{__version__}-py3-none-any.whl"
"""File name of the wheel: pure Python, for any machine."""
_INFO = f"bertwright-{__version__}.dist-info"
_TAGS = "Wheel-Version: 1.0\nGenerator: bertwright\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_PACKAGE = Path(__file__).parents[1]


def build_wheel() -> bytes:
    """Return the wheel. The same installation always gives the same bytes.

    Raises `MissingExtraError` if bertwright is only on Python's path, so that its requirements are not known.
    """
    members = dict([*_package(), *_metadata()])
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in members.items())
    members[f"{_INFO}/RECORD"] = f"{record}{_INFO}/RECORD,,\n".encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in members.items():
            # A time of its own (1980), not that of the files, so that the bytes depend on the contents alone.
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def requirement(extras: Set[str], folder: str) -> str:
    """Return what pip and uv install: the wheel in `folder`, with these extras."""
    return f"{folder}/{WHEEL}[{','.join(sorted(extras))}]"


def _package() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the package by their path in the wheel; those that links lead to too, such as recipes."""
    for folder in sorted(folders_below(_PACKAGE)):
        for file in sorted(folder.iterdir()):
            if file.is_file() and folder.name != "__pycache__":
                yield f"bertwright/{file.relative_to(_PACKAGE).as_posix()}", file.read_bytes()


def _metadata() -> Iterator[tuple[str, bytes]]:
    """Yield the files that describe the package: its requirements, extras, command and licence."""
    try:
        installed = metadata.distribution("bertwright")
    except metadata.PackageNotFoundError:
        raise MissingExtraError(
            "bertwright is not installed here, only its source is on Python's path, so no wheel of it can be made for "
            "other machines. Install it: pip install -e FOLDER, with the folder of the repository."
        ) from None
    for file in installed.files or ():
        name = file.as_posix().partition(".dist-info/")[2]
        if name in ("METADATA", "entry_points.txt") or name.startswith("licenses/"):
            yield f"{_INFO}/{name}", Path(str(file.locate())).read_bytes()
    yield f"{_INFO}/WHEEL", _TAGS.encode()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
