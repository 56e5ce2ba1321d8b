"""What is to be written, and how its examples are parted into files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from bertwright.core.errors import RecipeError
from bertwright.formats.format import FileNumber, Format, Kind, Split
from bertwright.formats.known import format_of


@dataclass(frozen=True)
class Target:
    """What is to be written."""

    kind: Kind
    length: int | None = None
    """Room for tokens in padded formats; None: that of the source."""
    predictions: int | None = None
    """Room for predictions in padded formats; None: that of the source."""
    compress: bool = False
    """Compress whole files, where the format has that."""

    @property
    def format(self) -> Format:
        """The format of examples; there is none for a kind of token documents."""
        return format_of(self.kind)


def kind_of(name: str) -> Kind:
    """The format called `name`, if it is one that can be written."""
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    if name not in kinds:
        raise RecipeError(f"there is no format {name!r} to write; there are {', '.join(kinds)}.")
    return kinds[name]


def file_name(target: Target, name: str, split: Split, number: int, files: int) -> str:
    """The name of file `number` of `files`, as the readers of the format ask for it."""
    return target.format.file_name(FileNumber(name, split, number, files, target.compress))


def folder_name(target: Target, split: Split) -> str:
    """The folder of a split inside that of its set; empty where the splits of a format lie together."""
    # LDDL's loader takes all files below a folder, so a split never lies inside the other.
    return {"training": "train", "test": "test"}[split] if target.format.split_folders else ""


def shares(target: Target, examples: int, files: int) -> list[int]:
    """Where each of `files` files begins among the examples, and where the last one ends; none would be empty.

    Where a loader wants files of n and of n + 1 examples, one of them all, and files of one size, are out of the
    question. So there are two at least, and where all would be of one size the last example is left out.
    """
    files = min(files, examples)
    if target.format.unequal_files and examples > 2:
        files = max(2, min(files, examples // 2))
        # LDDL's loader refuses files that are all of one size.
        examples -= examples % files == 0
    return [examples * number // files for number in range(files + 1)] if files else [0]
