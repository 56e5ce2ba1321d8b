"""What a rehearsal runs: the recipe at its full size, for a few steps, on what is prepared or on a sample of the text.

As they are: network, lengths, batches, micro-batches, precision, engine, graph, optimizer. Cut short: steps, what is
scored, and, where nothing is prepared yet, the text. Left out: what writes elsewhere.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import BertwrightError
from bertwright.core.files import make_folder
from bertwright.core.log import SILENT
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.errors import NoCopyError
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.source import open_source
from bertwright.pipeline.lineage import inputs_of
from bertwright.recipe import Recipe
from bertwright.train.averaging.config import within_few_steps
from bertwright.train.phase_config import ONE_PASS, PhaseConfig

STEPS = 2
"""Optimizer steps of each phase."""
PREPARED = ("corpus", "vocab", "examples")
_SCORED = 64
"""Most held-out sequences that are scored."""
_HELDOUT = 0.05
"""Least share of a sample's documents that is held out: of few documents a smaller one may be none."""
_SAMPLE = 16 * 2**20
"""Bytes of text, about, that are taken of each source."""
_PACKED = 4
"""Bytes of text for each byte of a compressed file, about."""


@dataclass(frozen=True)
class Rehearsal:
    """What is run in the place of a recipe."""

    recipe: Recipe
    text: str
    """Which text it is rehearsed with, in words."""
    made: tuple[str, ...] = ()
    """Stages that need not be rehearsed: their artifacts stand in the run folder, and belong to the recipe."""
    left_out: tuple[str, ...] = ()
    """Keys that are not tried out, because it would leave traces elsewhere."""


def rehearsal(recipe: Recipe, folder: Path, scratch: Path) -> Rehearsal:
    """The rehearsal of a recipe whose run folder is `folder`; samples of sources are written to `scratch`.

    Raises what opening a source raises.
    """
    made = tuple(name for name in PREPARED if (folder / name / MANIFEST).is_file()) if _prepared(recipe, folder) else ()
    values = recipe.shown(exclude_none=True)
    text = f"what is prepared in {folder} ({', '.join(made)})"
    if not made and recipe.corpus is None:
        text = "the data that its phases name"
    elif not made:
        assert recipe.corpus is not None
        text = _sample(values, recipe, folder, scratch)
    left_out = [key for key in ("observers", "mirror") if values["train"].pop(key, None)]
    values["train"].pop("spot_notice", None)  # two steps are not worth a checkpoint
    values["train"] |= {"profile": 0, "log_every": 1, "averaging": within_few_steps(recipe.train.averaging)}
    values["train"]["heldout_sequences"] = min(recipe.train.heldout_sequences, _SCORED)
    values["evaluate"]["max_sequences"] = min(recipe.evaluate.max_sequences or _SCORED, _SCORED)
    for phase, config in zip(values["train"]["phases"], recipe.train.phases, strict=True):
        _shorten(phase, config, sampled=not made and recipe.corpus is not None)
    return Rehearsal(Recipe.model_validate(values), text, made, tuple(f"train.{key}" for key in left_out))


def _prepared(recipe: Recipe, folder: Path) -> bool:
    """Whether the folder holds the examples and the vocabulary of exactly this recipe."""
    try:
        inputs_of("train", recipe, folder)
    except BertwrightError:
        return False
    return True


def _shorten(phase: dict[str, Any], config: PhaseConfig, sampled: bool) -> None:
    """End a phase after its first steps, of the full batch; the rate follows its whole length all the same."""
    phase["end_after"] = min(STEPS, config.steps or STEPS, config.end_after or STEPS)
    phase.pop("batch_warmup", None)
    # So many passes over a sample may have fewer steps than the warm-up.
    if sampled and phase.pop("epochs", None):
        phase["steps"] = max(STEPS, math.ceil(10 * config.warmup))


def _sample(values: dict[str, Any], recipe: Recipe, folder: Path, scratch: Path) -> str:
    """Put the beginning of each source in its place, and give the network as many rows as the real vocabulary has."""
    corpus = recipe.corpus
    assert corpus is not None
    try:
        values["corpus"]["source"] = list(_sources(corpus, scratch))
        text = (
            f"the first {_SAMPLE // 2**20} MB of each source"
            if any(scratch.iterdir())
            else "all sources, which are small"
        )
    except NoCopyError:
        values["corpus"] = {"source": ["sample-small"], "language": "hu", "filter": {"languages": ["hu", "en"]}}
        text = "the built-in sample: a source lies on another machine, and has not been copied yet"
    values["examples"]["heldout"] = max(recipe.examples.heldout, _HELDOUT)
    vocabulary = folder / "vocab" / "vocab.txt"
    if recipe.vocab.file is None and vocabulary.is_file() and (vocabulary.parent / MANIFEST).is_file():
        case = {key: values["vocab"][key] for key in ("lower_case", "strip_accents")}
        values["vocab"] = {"file": str(vocabulary), **case}
        text += ", with the vocabulary that is there"
    elif recipe.vocab.file is None:
        # A sample yields fewer entries, and the matrix of all entries is a large part of the memory.
        values["model"]["pad_vocab_to_multiple_of"] = recipe.network().vocab_size
    return text


def _sources(corpus: CorpusConfig, scratch: Path) -> Iterator[dict[str, Any]]:
    """Each source with the beginning of its first file alone; a built-in one is small."""
    for number, source in enumerate(corpus.source):
        said = source.model_dump(mode="json")
        if source.path not in ("sample", "sample-small"):
            said["path"] = str(_beginning(source, corpus.cache_dir, scratch / f"source-{number}"))
        yield said


def _beginning(source: SourceConfig, downloads: Path, folder: Path) -> Path:
    """A file with the beginning of the source's first file; that file itself where it is small, or a table."""
    file = open_source(source, downloads, SILENT, copying=False).files[0]
    most = _SAMPLE if file.compression == "plain" else _SAMPLE // _PACKED
    if file.size <= most or not format_of(file.format).is_text:
        return file.path
    path = make_folder(folder) / file.path.name
    with file.path.open("rb") as whole, path.open("wb") as part:
        part.write(_cut(whole.read(most), file))
    return path


def _cut(data: bytes, file: File) -> bytes:
    """The whole lines of a text; compressed data may break off anywhere."""
    whole_lines = file.compression == "plain" and file.encoding == "utf-8" and b"\n" in data
    return data[: data.rindex(b"\n") + 1] if whole_lines else data


def link(made: tuple[str, ...], folder: Path, run: Path) -> None:
    """Let the finished artifacts of `folder` stand in the run folder of the rehearsal too."""
    for name in made:
        (run / name).symlink_to((folder / name).absolute(), target_is_directory=True)


def alone(recipe: Recipe, index: int) -> Recipe:
    """The rehearsal of one phase at its size; the others are there with a single sequence, for the examples are those
    of all phases."""
    values = recipe.shown(exclude_none=True)
    for number, phase in enumerate(values["train"]["phases"]):
        if number != index:
            phase |= {"batch": 1, "end_after": 1, **ONE_PASS}
    if recipe.train.phases[index].micro_batch != "auto":
        values["train"]["memory_limit_gb"] = 0.0  # which bounds only what is found
    return Recipe.model_validate(values)


def remove(leftover: Path) -> None:
    """Remove what a rehearsal left, this one or one that was killed; links are removed, not what they lead to."""
    if leftover.is_dir() and not leftover.is_symlink():
        shutil.rmtree(leftover)
    else:
        leftover.unlink(missing_ok=True)
