"""What a rehearsal runs: the recipe at full size, for a few steps, on prepared data or on a sample of the text.

Unchanged: network, lengths, batches, micro-batches, precision, engine, graph, optimizer. Shortened: steps, scoring, and
the text if nothing is prepared yet. Left out: settings that write elsewhere and, without room for several ranks, what
those do together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.files import make_folder
from bertwright.core.log import SILENT
from bertwright.core.resources import default_workers
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.errors import NoCopyError
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.source import open_source
from bertwright.estimate.expected_choices import as_expected
from bertwright.estimate.known_data import known_before
from bertwright.estimate.machine import this_machine
from bertwright.estimate.machine_facts import training_gpus
from bertwright.pipeline.lineage import inputs_of
from bertwright.recipe import Recipe
from bertwright.train.averaging.config import within_few_steps
from bertwright.train.precision.config import Fp16Config
from bertwright.train.settings.phase_config import ONE_PASS, PhaseConfig

STEPS = 2
"""Optimizer steps of each phase."""
PREPARED = ("corpus", "vocab", "examples")
_SCORED = 64
"""Maximum number of held-out sequences that are scored."""
_HELDOUT = 0.05
"""Minimum held-out share of a sample's documents: a smaller share of few documents may be empty."""
_SAMPLE = 16 * 2**20
"""Approximate bytes of text taken from each source."""
_PACKED = 4
"""Approximate bytes of text per byte of a compressed file."""
_SCALE = 256.0
"""Loss scale of fp16 at which the gradients of a first step do not overflow."""
_ON_A_PROCESSOR = 2
"""Ranks on a CPU: the fewest that exchange something."""
_TRACES = "it would leave traces elsewhere"
_ALONE = "one process has no other ranks to share weights and gradients with"


@dataclass(frozen=True)
class Rehearsal:
    """What runs in place of a recipe."""

    recipe: Recipe
    text: str
    """A description of the text that is used."""
    made: tuple[str, ...] = ()
    """Stages that need no rehearsal, because the run folder has their artifacts, made with this recipe."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Keys that are not tried, or not completely, each with the reason."""
    ranks: int = 1
    """Number of processes that train."""


def rehearsal(recipe: Recipe, folder: Path, scratch: Path) -> Rehearsal:
    """The rehearsal of a recipe with run folder `folder`; samples of sources are written to `scratch`.

    Raises whatever opening a source raises.
    """
    made = (
        tuple(name for name in PREPARED if (folder / name / MANIFEST).is_file()) if _is_prepared(recipe, folder) else ()
    )
    # In so few steps `auto` would measure nothing.
    recipe = as_expected(recipe, known_before(recipe, folder), this_machine(recipe))
    values = recipe.to_json(exclude_none=True)
    text = f"the finished stages in {folder} ({', '.join(made)})"
    if not made and recipe.corpus is None:
        text = "the data given in its phases"
    elif not made:
        assert recipe.corpus is not None
        text = _sample(values, recipe, folder, scratch)
    left_out = {f"train.{key}": _TRACES for key in ("observers", "mirror") if values["train"].pop(key, None)}
    # Two steps are not worth a checkpoint, and have no earlier ones to be judged by.
    for key in ("spot_notice", "guard"):
        values["train"].pop(key, None)
    values["train"] |= {"profile": 0, "log_every": 1, "averaging": within_few_steps(recipe.train.averaging)}
    values["train"]["heldout_sequences"] = min(recipe.train.heldout_sequences, _SCORED)
    values["evaluate"]["max_sequences"] = min(recipe.evaluate.max_sequences or _SCORED, _SCORED)
    if isinstance(fp16 := recipe.train.precision, Fp16Config):
        # The first scale is meant to overflow a few times, and then no update would be tried.
        values["train"]["precision"]["initial_scale"] = max(fp16.min_scale, min(fp16.initial_scale, _SCALE))
    for phase, config in zip(values["train"]["phases"], recipe.train.phases, strict=True):
        _shorten(phase, config, sampled=not made and recipe.corpus is not None)
    shortened = Recipe.model_validate(values)
    ranks = ranks_for(shortened)
    if ranks == 1 and recipe.train.engine.kind not in ("auto", "single"):
        left_out["train.engine"] = _ALONE
    return Rehearsal(shortened, text, made, left_out, ranks)


def ranks_for(recipe: Recipe) -> int:
    """Return how many ranks rehearse the training: with an engine of several ranks one for each GPU of this machine, or
    two on a CPU; one if the machine or the recipe has no room for more."""
    if recipe.train.engine.kind in ("auto", "single"):
        return 1
    ranks = len(training_gpus(recipe)) or min(_ON_A_PROCESSOR, default_workers())
    try:
        recipe.check(ranks=ranks, given=False)
    except RecipeError:
        return 1
    return ranks


def _is_prepared(recipe: Recipe, folder: Path) -> bool:
    """Whether the folder holds examples and a vocabulary made with exactly this recipe."""
    try:
        inputs_of("train", recipe, folder)
    except BertwrightError:
        return False
    return True


def _shorten(phase: dict[str, Any], config: PhaseConfig, sampled: bool) -> None:
    """End a phase after its first steps at full batch size; the learning rate still follows the phase's full length."""
    phase["end_after"] = min(STEPS, _fewest_steps(config), config.end_after or STEPS)
    for key in ("batch_warmup", "target_accuracy"):
        phase.pop(key, None)
    # On a sample, the requested number of passes may have fewer steps than the warm-up, or than the mask rates need.
    if sampled and phase.pop("epochs", None):
        phase["steps"] = max(STEPS, math.ceil(10 * config.warmup), *(step + 1 for step in config.masking.changes))


def _fewest_steps(phase: PhaseConfig) -> int:
    """The minimum number of steps of a phase at full batch size; `STEPS` for epochs, which are hardly ever one step."""
    if phase.samples is not None:
        return math.ceil(phase.samples / phase.batch)
    if phase.tokens is not None:
        return math.ceil(phase.tokens / (phase.batch * phase.length))
    return phase.steps or STEPS


def _sample(values: dict[str, Any], recipe: Recipe, folder: Path, scratch: Path) -> str:
    """Replace each source by its beginning, and give the network as many rows as the real vocabulary has entries."""
    corpus = recipe.corpus
    assert corpus is not None
    try:
        values["corpus"]["source"] = list(_sources(corpus, scratch))
        text = (
            f"the first {_SAMPLE // 2**20} MB of each source"
            if any(scratch.iterdir())
            else "all sources, because they are small"
        )
    except NoCopyError:
        values["corpus"] = {"source": ["sample-small"], "language": "hu", "filter": {"languages": ["hu", "en"]}}
        text = "the built-in sample, because a source is on another machine and has not been copied yet"
    values["examples"]["heldout"] = max(recipe.examples.heldout, _HELDOUT)
    vocabulary = folder / "vocab" / "vocab.txt"
    if recipe.vocab.file is None and vocabulary.is_file() and (vocabulary.parent / MANIFEST).is_file():
        case = {key: values["vocab"][key] for key in ("lower_case", "strip_accents", "longest_word")}
        values["vocab"] = {"file": str(vocabulary), **case}
        text += ", with the existing vocabulary"
    elif recipe.vocab.file is None:
        # A sample yields fewer entries, and the embedding matrix is a large part of the memory.
        values["model"]["pad_vocab_to_multiple_of"] = recipe.network().vocab_size
    return text


def _sources(corpus: CorpusConfig, scratch: Path) -> Iterator[dict[str, Any]]:
    """Each source, reduced to the beginning of its first file; built-in ones are small and stay unchanged."""
    for number, source in enumerate(corpus.source):
        values = source.model_dump(mode="json")
        if source.path not in ("sample", "sample-small"):
            values["path"] = str(_beginning(source, corpus.cache_dir, scratch / f"source-{number}"))
        yield values


def _beginning(source: SourceConfig, downloads: Path, folder: Path) -> Path:
    """A file with the beginning of the source's first file; that file itself if it is small or not a text."""
    file = open_source(source, downloads, SILENT, copying=False).files[0]
    most = _SAMPLE if file.compression == "plain" else _SAMPLE // _PACKED
    if file.size <= most or not format_of(file.format).is_text:
        return file.path
    path = make_folder(folder) / file.path.name
    with file.path.open("rb") as whole, path.open("wb") as part:
        part.write(_cut(whole.read(most), file))
    return path


def _cut(data: bytes, file: File) -> bytes:
    """A text cut to complete lines; compressed data may break off anywhere."""
    whole_lines = file.compression == "plain" and file.encoding == "utf-8" and b"\n" in data
    return data[: data.rindex(b"\n") + 1] if whole_lines else data


def link(made: tuple[str, ...], folder: Path, run: Path) -> None:
    """Link the finished artifacts of `folder` into the rehearsal's run folder `run`."""
    for name in made:
        (run / name).symlink_to((folder / name).absolute(), target_is_directory=True)


def alone(recipe: Recipe, index: int, ranks: int = 1) -> Recipe:
    """The rehearsal of one phase at full size; the other phases are cut to a single sequence per rank instead of being
    removed, because the examples cover all phases."""
    values = recipe.to_json(exclude_none=True)
    for number, phase in enumerate(values["train"]["phases"]):
        if number != index:
            phase |= {"batch": ranks, "end_after": 1, **ONE_PASS}
    if recipe.train.phases[index].micro_batch != "auto":
        values["train"]["memory_limit_gb"] = 0.0  # only limits automatically chosen micro-batches
    return Recipe.model_validate(values)
