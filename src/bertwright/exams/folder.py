"""The exams that the files of a folder make: probes of tagged words, and minimal pairs.

Files that differ only in the words train, dev and test of their names belong together. A probe is fitted on train, or
else on dev, and scored on test, or else on dev.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import naming
from bertwright.examples.labelled.records import records
from bertwright.exams.exam import Exam
from bertwright.exams.minimal_pairs import MinimalPairs, pair_columns
from bertwright.exams.probe import Probe, read_single
from bertwright.tasks.tagging.files import RECORDS, words_of

_TAGGED = (".conllu", ".conll", ".tsv", ".iob2", ".jsonl", ".parquet")
_PAIRS = (".tsv", ".csv", ".jsonl")
_LINES = 2_000
"""Lines of a table in which the end of a sentence, an empty line, is looked for."""
_SPLIT = re.compile(r"(?:^|[-_.])(train(?:ing)?|dev(?:el)?|valid(?:ation)?|test)(?=[-_.]|$)", re.IGNORECASE)


def probes_in(folder: Path) -> list[Exam]:
    """The probes of a folder and of the folders in it; raises `RecipeError` if it has no files for one."""
    sets = defaultdict[tuple[Path, str], dict[str, Path]](dict)
    for file in _files(folder):
        if file.suffix in _TAGGED and (match := _SPLIT.search(file.stem)) and _has_tags(file):
            rest = file.stem[: match.start()] + file.stem[match.end() :]
            sets[file.parent, rest + file.suffix][match[1].lower().replace("valid", "dev")[:3]] = file
    chosen = [
        (parent, rest, fitted, scored)
        for (parent, rest), found in sorted(sets.items())
        if (fitted := found.get("tra", found.get("dev")))
        and (scored := found.get("tes", found.get("dev")))
        and fitted != scored
    ]
    in_folder, probes = Counter(parent for parent, *_ in chosen), list[Exam]()
    for parent, rest, fitted, scored in chosen:
        name = parent.resolve().name
        probes.append(Probe(name=name if in_folder[parent] == 1 else f"{name}/{rest}", train=fitted, test=scored))
    if not probes:
        raise RecipeError(
            f"{folder} has no files to probe with. Give a folder with tagged words, such as CoNLL-U, in two of the "
            "files train, dev and test, or with a folder for each set of these."
        )
    return probes


def exams_in(folder: Path) -> list[Exam]:
    """The probes, and an exam for each file of minimal pairs; raises `RecipeError` if there is neither."""
    files = [file for file in _files(folder) if file.suffix in _PAIRS and _has_pairs(file)]
    alike = Counter(file.stem for file in files)
    pairs: list[Exam] = [
        MinimalPairs(name=f"{file.parent.resolve().name}/{file.name}" if alike[file.stem] > 1 else file.stem, data=file)
        for file in files
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


def _has_tags(file: Path) -> bool:
    """Whether a file has tagged words: a table, or records, may have other things, such as labelled texts."""
    if file.suffix == ".tsv":
        with naming(file), file.open("rb") as lines:
            ends_sentences = any(not line.strip() for line in islice(lines, _LINES))
        return ends_sentences or read_single(file, 1) is not None
    return file.suffix not in RECORDS or words_of(_first(file)) is not None


def _has_pairs(file: Path) -> bool:
    return pair_columns(_first(file)) is not None


def _first(file: Path) -> Mapping[str, Any]:
    """The first record of a file; empty if it has none."""
    try:
        return next((record for _, record in records(file)), {})
    except DataError:
        return {}  # of another format, which is no error as long as no recipe names the file
