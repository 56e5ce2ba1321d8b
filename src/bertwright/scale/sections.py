"""Replacements in the other sections of a recipe at a tiny scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from bertwright.check.machine.computing import computing
from bertwright.check.machine.device import device, instructions, precision
from bertwright.check.recipe.packages import packages
from bertwright.core.distributed import rank_and_world
from bertwright.recipe import Recipe
from bertwright.scale.replacement import Replacement
from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.train.averaging.config import LastConfig, within_few_steps
from bertwright.vocab.config import SentencePieceConfig

ENTRIES = 800
"""Vocabulary size: enough for the alphabets of the built-in text, with a hundred unused entries."""
_SAMPLE = "built in, in Hungarian and English"
_SMALL = "less computation"


def scaled_text(recipe: Recipe, of_the_user: bool) -> Iterator[Replacement]:
    """Yield replacements in corpus, vocabulary and examples; `of_the_user`: the command line sets the source."""
    if not of_the_user:
        yield Replacement("corpus.source", "sample-small", _SAMPLE)
        yield Replacement("corpus.language", "hu", _SAMPLE)
        # A filter that is off may not name languages.
        if recipe.corpus is None or recipe.corpus.filter.enabled:
            yield Replacement("corpus.filter.languages", ["hu", "en"], _SAMPLE)
        # A program for the user's language, which may not be installed here.
        yield Replacement("corpus.split.command", None, _SAMPLE)
    if recipe.texts is not None:
        yield Replacement("texts", None, "a corpus is used instead")
    if recipe.vocab.file is not None:
        yield Replacement("vocab.file", None, "a small vocabulary is trained instead")
    yield Replacement("vocab.size", min(recipe.vocab.size or ENTRIES, ENTRIES), _SMALL)
    if isinstance(recipe.vocab.trainer, SentencePieceConfig) and not find_spec("sentencepiece"):
        yield Replacement("vocab.trainer", {"kind": "wordpiece"}, "sentencepiece is not installed")
    # Labelled texts have no passes, and the key would be refused.
    if not recipe.task.texts:
        yield Replacement("examples.passes", 1, _SMALL)
    yield Replacement("examples.heldout", max(recipe.examples.heldout, 0.1), "the text is small: a few documents")
    for stage in ("corpus", "examples"):
        yield Replacement(f"{stage}.workers", 1, _SMALL)


def scaled_model(recipe: Recipe) -> Iterator[Replacement]:
    """Yield the replacements that select the smallest network of the family."""
    if recipe.model.config is not None:
        yield Replacement("model.config", None, "the smallest of its family instead")
    yield Replacement("model.size", "tiny", "the smallest of its family")


def scaled_training(recipe: Recipe) -> Iterator[Replacement]:
    """Yield replacements in what training starts from, computes with and saves."""
    train = recipe.train
    if train.init_from is not None:
        yield Replacement("train.init_from", None, "made for another network")
        # The next two are valid only beside train.init_from.
        yield Replacement("train.init_layers", None, "training starts from random weights")
        yield Replacement("train.phases.0.restart_bias_correction", None, "training starts from random weights")
    if train.objective.kind == "distillation":
        yield Replacement("train.objective", None, "its teacher has another vocabulary")
    # The built-in labelled texts are acceptable and unacceptable sentences, which is the task CoLA.
    if isinstance(train.objective, ClassificationConfig) and train.objective.task != "cola":
        yield Replacement("train.objective", {"kind": "classification", "task": "cola"}, "the built-in task")
    if isinstance(train.averaging, LastConfig):
        yield Replacement("train.averaging", within_few_steps(train.averaging), _SMALL)
    for i, phase in enumerate(train.phases):
        if phase.target_accuracy is not None:
            yield Replacement(f"train.phases.{i}.target_accuracy", None, "so few steps do not reach it")
    if train.guard.spike or train.guard.loss_spike:
        yield Replacement("train.guard", None, "so few steps have no earlier ones to be judged by")
    if train.expected:
        yield Replacement("train.expected", None, "another network has different losses")
    yield from _computing(recipe)
    if train.mirror:
        yield Replacement("train.mirror", None, "no checkpoints are copied")
    if train.spot_notice.kind != "none":
        yield Replacement("train.spot_notice", None, "such a short run needs no notice")
    if train.observers:
        yield Replacement("train.observers", None, "metrics are not sent anywhere")
    for key in ("checkpoint_every", "evaluate_every"):
        yield Replacement(f"train.{key}", 4, _SMALL)
    yield Replacement("train.log_every", 1, "show every step")
    yield Replacement("train.heldout_sequences", min(8, train.heldout_sequences), _SMALL)
    yield Replacement("evaluate.max_sequences", min(16, recipe.evaluate.max_sequences or 16), _SMALL)


def _computing(recipe: Recipe) -> Iterator[Replacement]:
    """Yield replacements of precision, kernels and engine that this machine does not support."""
    if recipe.train.engine.kind not in ("auto", "single", "ddp") and rank_and_world()[1] == 1:
        yield Replacement("train.engine", None, "a single process holds all weights")
    instead: dict[str, Any] = {"train.precision": "fp32", "train.device": "auto", "train.cpu_isa": None}
    instead |= {"train.attention": None, "train.graph": None, "evaluate.device": "auto"}
    # A package that is missing for any other key cannot be replaced: the check of the run reports it.
    for key, reason in _refused(recipe, ["train", "evaluate"]).items():
        if key in instead:
            yield Replacement(key, instead[key], reason)


def _refused(recipe: Recipe, stages: Sequence[str]) -> dict[str, str]:
    """Return the keys that this machine does not support, each with the reason."""
    asked = (device, precision, instructions, computing, packages)
    errors = (v for of in asked for v in of(recipe, stages) if v.level == "error")
    return {verdict.about: verdict.text.rstrip(".") for verdict in errors}
