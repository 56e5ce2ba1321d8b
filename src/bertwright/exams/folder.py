"""The exams that the files of a folder make: probes of tagged words, and minimal pairs.

Files that differ only in the words train, dev and test of their names belong together. A probe is fitted on train, or
else on dev, and scored on test, or else on dev.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.errors import DataError, RecipeError
from bertwright.examples.labelled.records import records
from bertwright.exams.exam import Exam
from bertwright.exams.minimal_pairs import MinimalPairs, pair_columns
from bertwright.exams.probe import Probe

_TAGGED = (".conllu", ".conll", ".tsv", ".iob2", ".jsonl", ".parquet")
_PAIRS = (".tsv", ".csv", ".jsonl")
_SPLIT = re.compile(r"(?:^|[-_.])(train(?:ing)?|dev(?:el)?|valid(?:ation)?|test)(?=[-_.]|$)", re.IGNORECASE)


def probes_in(folder: Path) -> list[Exam]:
    """The probes of a folder and of the folders in it; raises `RecipeError` if it has no files for one."""
    sets = defaultdict[tuple[Path, str], dict[str, Path]](dict)
    for file in _files(folder):
        if file.suffix in _TAGGED and (match := _SPLIT.search(file.stem)):
            rest = file.stem[: match.start()] + file.stem[match.end() :]
            sets[file.parent, rest + file.suffix][match[1].lower().replace("valid", "dev")[:3]] = file
    probes: list[Exam] = []
    for (parent, _), found in sorted(sets.items()):
        fitted, scored = found.get("tra", found.get("dev")), found.get("tes", found.get("dev"))
        if fitted and scored and fitted != scored:
            probes.append(Probe(name=parent.resolve().name, train=fitted, test=scored))
    if not probes:
        raise RecipeError(
            f"{folder} has no files to probe with. Give a folder with tagged words, such as CoNLL-U, in two of the "
            "files train, dev and test, or with a folder for each set of these."
        )
    return probes


def exams_in(folder: Path) -> list[Exam]:
    """The probes, and an exam for each file of minimal pairs; raises `RecipeError` if there is neither."""
    pairs: list[Exam] = [
        MinimalPairs(name=file.stem, data=file) for file in _files(folder) if file.suffix in _PAIRS and _has_pairs(file)
    ]
    try:
        return [*pairs, *probes_in(folder)]
    except RecipeError:
        if pairs:
            return pairs
        raise


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder, and of the folders in it, in order; hidden ones are what editors leave."""
    if not folder.is_dir():
        raise RecipeError(f"--data {folder} is not a folder. Give one with tagged words or minimal pairs.")
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
        elif path.is_file() and not path.name.startswith("."):
            yield path


def _has_pairs(file: Path) -> bool:
    try:
        return pair_columns(next((record for _, record in records(file)), {})) is not None
    except DataError:
        return False  # of another format, which is no error as long as no recipe names the file
