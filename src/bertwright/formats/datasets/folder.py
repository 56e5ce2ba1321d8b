"""What Hugging Face `datasets` keeps beside its Arrow files, so that `load_from_disk` opens the folder.

seq_128/dataset_dict.json            the splits
seq_128/train/state.json             the files of a split, in order, and a fingerprint of their content
seq_128/train/dataset_info.json      nothing that the Arrow files do not say
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertwright.core.files import sha256, sha256_of, write_json
from bertwright.formats.format import SPLITS


def describe_folders(folder: Path) -> None:
    """Describe every folder of Arrow files in or below `folder`, and the folders that hold one for each split."""
    saved = sorted({file.parent for file in folder.rglob("*.arrow")})
    for split in saved:
        files = sorted(split.glob("*.arrow"))
        state: dict[str, Any] = {
            "_data_files": [{"filename": file.name} for file in files],
            "_fingerprint": sha256_of([sha256(file) for file in files])[:16],
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": split.name if split.name in SPLITS else None,
        }
        write_json(split / "state.json", state)
        write_json(split / "dataset_info.json", {"citation": "", "description": "", "homepage": "", "license": ""})
    for parent in sorted({split.parent for split in saved if split.name in SPLITS}):
        names = [split.name for split in saved if split.parent == parent and split.name in SPLITS]
        write_json(parent / "dataset_dict.json", {"splits": names})
