"""What a tiny scale replaces in each section of a recipe; the phases keep their lengths, learning rates, masks and
shares of the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from bertwright.check.machine.computing import computing, device, instructions, precision
from bertwright.check.recipe.packages import packages
from bertwright.core.distributed import rank_and_world
from bertwright.recipe import Recipe
from bertwright.sample import LABELLED
from bertwright.train.averaging.config import LastConfig, within_few_steps
from bertwright.train.settings.phase_config import LENGTHS, PhaseConfig
from bertwright.vocab.config import SentencePieceConfig

ENTRIES = 800
"""Vocabulary size: enough for the alphabets of the built-in text, with a hundred unused entries."""
STEPS = 12
"""Approximate number of optimizer steps of all phases together."""
TOKENS = 2048
"""Capacity of the largest global batch, in tokens."""
_SAMPLE = "built in, in Hungarian and English"
_SMALL = "less computation"
_SHAPE = "the phases keep their shares of the steps"


class Replacement(NamedTuple):
    """A key, its new value, and the reason."""

    key: str
    """The dotted key."""
    value: Any
    """The value in TOML's types; None: the key is removed, and its default applies."""
    reason: str


def scale_text(recipe: Recipe, of_the_user: bool) -> Iterator[Replacement]:
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
    if recipe.vocab.extend is not None:
        yield Replacement("vocab.extend", None, "a small vocabulary is trained instead")
        yield Replacement("vocab.fill_unused", None, "it is for vocab.extend")
    yield Replacement("vocab.size", min(recipe.vocab.size or ENTRIES, ENTRIES), _SMALL)
    if isinstance(recipe.vocab.trainer, SentencePieceConfig) and not find_spec("sentencepiece"):
        yield Replacement("vocab.trainer", {"kind": "wordpiece"}, "sentencepiece is not installed")
    # Labelled texts have no passes, and the key would be refused.
    if not recipe.task.files:
        yield Replacement("examples.passes", 1, _SMALL)
    yield Replacement("examples.heldout", max(recipe.examples.heldout, 0.1), "the text is small: a few documents")
    for stage in ("corpus", "examples"):
        yield Replacement(f"{stage}.workers", 1, _SMALL)


def scale_model(recipe: Recipe) -> Iterator[Replacement]:
    """Yield the replacements that select the smallest network of the family."""
    if recipe.model.config is not None:
        yield Replacement("model.config", None, "the smallest of its family instead")
    yield Replacement("model.size", "tiny", "the smallest of its family")


def scale_training(recipe: Recipe) -> Iterator[Replacement]:
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
    if train.objective.files and getattr(train.objective, "task", None) != "cola":
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
    for key, reason in _unsupported_keys(recipe, ["train", "evaluate"]).items():
        if key in instead:
            yield Replacement(key, instead[key], reason)


def _unsupported_keys(recipe: Recipe, stages: Sequence[str]) -> dict[str, str]:
    """Return the keys that this machine does not support, each with the reason."""
    checks = (device, precision, instructions, computing, packages)
    errors = (v for check in checks for v in check(recipe, stages) if v.level == "error")
    return {verdict.about: verdict.text.rstrip(".") for verdict in errors}


def scale_phases(phases: Sequence[PhaseConfig], labelled: int | None = None) -> Iterator[Replacement]:
    """Yield the replacements in the phases; `labelled`: how many labelled texts are their data, 0 if that is not known
    yet; None: they have other data."""
    known = [_planned_steps(phase, labelled or 0) for phase in phases]
    # A phase whose length nobody knows yet counts as one whole tiny run: alone, it keeps all of its steps.
    planned = [STEPS if steps is None else steps for steps in known]
    total, largest = sum(planned), max(phase.batch * phase.length for phase in phases)
    for i, (phase, steps) in enumerate(zip(phases, planned, strict=True)):
        share = min(1.0, STEPS / total)
        short = max(2, round(steps * share)) if steps > 2 else max(1, round(steps))
        # One factor for all phases, that of the largest batch, so that they keep their ratio.
        batch = max(1, round(phase.batch * min(1.0, TOKENS / largest)))
        replaced = [*_length(phase, short, steps), *_warmup(phase, short, known[i]), *_masking(phase, short, steps)]
        replaced += [*_data(phase, labelled is not None), *_batch(phase, batch)]
        yield from (Replacement(f"train.phases.{i}.{key}", value, reason) for key, value, reason in replaced)


def _planned_steps(phase: PhaseConfig, labelled: int) -> float | None:
    """Return the approximate steps of a phase; None for epochs over examples whose number is not known yet."""
    if phase.steps is not None:
        return phase.steps
    if phase.samples is not None:
        return max(1.0, phase.samples / phase.batch)
    if phase.tokens is not None:
        return max(1.0, phase.tokens / (phase.batch * phase.length))
    assert phase.epochs is not None
    return max(1.0, phase.epochs * labelled / phase.batch) if labelled else None


def _length(phase: PhaseConfig, steps: int, planned: float) -> Iterator[tuple[str, object, str]]:
    # The first is steps, and a phase may have only one length.
    for name in LENGTHS[1:]:
        if getattr(phase, name) is not None:
            yield name, None, "replaced by steps"
    yield "steps", steps, _SHAPE
    if phase.end_after is not None:
        yield "end_after", min(steps, max(1, round(phase.end_after * steps / planned))), _SHAPE
    if phase.hours is not None:
        yield "hours", None, "the phase ends after a number of steps"


def _warmup(phase: PhaseConfig, steps: int, planned: float | None) -> Iterator[tuple[str, object, str]]:
    """Yield what keeps the share of a warm-up that is given in steps."""
    if phase.warmup < 1:
        return
    before = getattr(phase.schedule, "warmup_before", 0)
    if planned is None:
        yield "warmup", None, "its share is not known before the examples are counted"
        if before:
            yield "schedule.warmup_before", None, "the warm-up is a share"
        return
    warmup = min(steps, max(1, round(phase.warmup * steps / planned)))
    yield "warmup", warmup, _SHAPE
    if before:
        # At least a step of the warm-up must be left.
        yield "schedule.warmup_before", min(warmup - 1, round(before * steps / planned)), _SHAPE


def _masking(phase: PhaseConfig, steps: int, planned: float) -> Iterator[tuple[str, object, str]]:
    if isinstance(phase.masking.rate, float):
        return
    rates: list[list[float]] = []
    for step, rate in phase.masking.rate:
        # Every pair has a later step than the one before it.
        at = max(round(step * steps / planned), len(rates) and int(rates[-1][0]) + 1)
        # A change that the phase does not reach would be refused as one without effect.
        if at < steps:
            rates.append([at, rate])
    yield "masking.rate", rates, _SHAPE


def _data(phase: PhaseConfig, labelled: bool) -> Iterator[tuple[str, object, str]]:
    if labelled:
        yield "data", str(LABELLED), "built in, a few English sentences"
    elif phase.data is not None:
        yield "data", None, "replaced by the built-in text"
        yield "quarantine", None, "no data files are read"


def _batch(phase: PhaseConfig, batch: int) -> Iterator[tuple[str, object, str]]:
    yield "batch", batch, "the batches of the phases keep their ratio" if batch < phase.batch else _SMALL
    if phase.batch_warmup:
        # One increase stands for all: so few steps and sequences leave no room for more.
        grows = [[0, max(1, batch // 2)], [1, batch]] if batch > 1 else []
        yield "batch_warmup", grows or None, "it still grows" if grows else "a batch of one cannot grow"
    if phase.micro_tokens:
        # Two of the longest sequences, so that a forward pass still holds several.
        yield "micro_tokens", 2 * phase.length, _SMALL
    elif phase.packing:
        yield "micro_batch", min(2, batch), _SMALL
    elif phase.micro_batch != "auto" and 0 < phase.micro_batch < phase.batch:
        yield "micro_batch", max(1, batch // 2), "gradients are still accumulated" if batch > 1 else _SMALL
    elif phase.micro_batch not in (0, "auto"):
        # It was the whole batch, and may exceed the small one, which would be refused.
        yield "micro_batch", None, _SMALL
