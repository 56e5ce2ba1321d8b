"""Reads the index of a network that transformers saved in several files: which of them has which tensor."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import ArtifactError
from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.core.json_values import parse_json


def indexed_files(path: Path) -> dict[str, str]:
    """Return the name of the file of each tensor, according to the index in `path`.

    Raises `ArtifactError` if the index is damaged, or if a file that it lists is absent from its folder.
    """
    try:
        files = parse_json(read_bytes(path, MAX_JSON))["weight_map"]
        # A name with folders in it could lead anywhere.
        if not files or any(Path(file).name != file for file in files.values()):
            raise ValueError("its weight_map must have a file name for each tensor")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"cannot read {path}: {error}. Restore it from a copy, or save the network again."
        ) from error
    folder = path.parent
    if gone := next((name for name in sorted(set(files.values())) if not (folder / name).is_file()), None):
        raise ArtifactError(f"{folder / gone}, which {path.name} lists, does not exist. Download or copy it, too.")
    return dict(files)
