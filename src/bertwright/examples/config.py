"""The recipe section `[examples]`, and what a training phase sets for its examples: data, masking, micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bertwright.core.config import Section, ShownText, runtime_only
from bertwright.examples.own_files import OwnFiles

MOST_RATES = 4
"""Maximum number of mask rates per phase: compiled code has a separate shape for each."""
Rate = Annotated[float, Field(gt=0, lt=1)]


def _from_step_0(rates: float | tuple[tuple[int, float], ...]) -> float | tuple[tuple[int, float], ...]:
    if isinstance(rates, float):
        return rates
    steps = [step for step, _ in rates]
    if not rates or steps[0] != 0 or any(a >= b for a, b in pairwise(steps)) or len(rates) > MOST_RATES:
        raise ValueError(f"{rates} must be 1 to {MOST_RATES} pairs [step, rate] from step 0 on, such as [[0, 0.3]]")
    return rates


class MaskingConfig(Section):
    """Which tokens are predicted and what replaces them (Devlin et al. 2019 §3.1)."""

    rate: Annotated[Rate | tuple[tuple[int, Rate], ...], AfterValidator(_from_step_0)] = 0.15
    """Share of the tokens (special ones counted, as in the originals) that are predicted, or up to four pairs
    [step, share]: from that step of the phase on."""

    max_predictions: int = Field(0, ge=0)
    """Maximum number of predicted tokens per sequence; 0: length x rate x 25/24 (the originals' 20 at 128, 80 at 512),
    or with `bernoulli` no limit."""

    count: Literal["exact", "bernoulli"] = "exact"
    """How many tokens are predicted: `exact`, a fixed number for each length, or `bernoulli`, a separate random draw
    for every token (or word)."""

    unit: Literal["tokens", "words", "spans"] = "tokens"
    """What is masked together: single tokens, all pieces of a word, or several consecutive words (ALBERT's n-grams)."""

    longest_span: int = Field(3, ge=1, le=32)
    """Maximum length of a span (words); a length of n words is drawn with a probability proportional to 1/n."""

    mask_share: float = Field(0.8, ge=0, le=1)
    """Share of the predicted tokens that are replaced by [MASK]."""

    random_share: float = Field(0.1, ge=0, le=1)
    """Share of the predicted tokens that are replaced by a random entry; the remaining ones stay unchanged."""

    random_tokens: Literal["words", "all"] = "words"
    """The entries that random replacements are drawn from: `words`, all except special and unused entries, or `all`, as
    in the originals."""

    static: bool = False
    """Whether masks are drawn only once for each pass of the plans, as in the originals' files, instead of again in
    every epoch."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.mask_share + self.random_share > 1:
            raise ValueError(f"mask_share {self.mask_share} and random_share {self.random_share} exceed 1 together")
        # A span is drawn as a unit, so its words have no separate draws.
        if self.unit == "spans" and self.count == "bernoulli":
            raise ValueError('count = "bernoulli" has no effect for spans: use unit = "tokens" or "words"')
        # A setting without effect is rejected, not ignored.
        if self.unit != "spans" and self.longest_span != type(self).model_fields["longest_span"].default:
            raise ValueError(
                f'longest_span {self.longest_span} has an effect only with unit = "spans", not "{self.unit}": set that '
                "unit, or leave longest_span out"
            )
        return self

    def rate_at(self, step: int) -> float:
        """The mask rate at a step of the phase."""
        return next(rate for start, rate in reversed(self.rates) if start <= step)

    @property
    def rates(self) -> tuple[tuple[int, float], ...]:
        """The mask rates, each with the step of the phase from which it applies."""
        return ((0, self.rate),) if isinstance(self.rate, float) else self.rate

    @property
    def changes(self) -> list[int]:
        """The steps of the phase at which the rate changes."""
        return [step for step, _ in self.rates[1:]]

    def most(self, length: int) -> int:
        """The maximum number of predicted tokens in a sequence of this length, at any step."""
        if self.max_predictions or self.count == "bernoulli":
            return min(self.max_predictions or length, length)
        highest = max(rate for _, rate in self.rates)
        # 20 at 128 and 80 at 512, as in the originals; the rate alone would give 19 and 77.
        return min(max(1, round(length * highest * 25 / 24)), length)


VERSION = 8
"""Incremented whenever a code change alters the result of the stage."""


def _rising(bounds: tuple[float, float]) -> tuple[float, float]:
    if not 0.0 <= bounds[0] < bounds[1] <= 1.0:
        raise ValueError(f"{list(bounds)} must rise within 0 and 1, such as [0.0, 0.9]")
    return bounds


PAIRS = {"next-sentence": "nsp", "sentence-order": "sop"}
"""The plans whose examples are pairs, and the name of the task learned from their labels."""
Length = Annotated[int, Field(ge=8, le=32_768)]
"""Maximum length of an example, special tokens included (tokens)."""
DocumentRange = Annotated[tuple[float, float], AfterValidator(_rising)]
"""Share of the documents, as a half-open range of their hashes in [0, 1]; disjoint ranges share no document."""


class PlanSet(Section):
    """The examples of one training phase: a length and a share of the documents."""

    length: Length
    """Maximum length of an example, special tokens included (tokens)."""

    document_range: DocumentRange = (0.0, 1.0)
    """Share of the training documents, as a half-open range of their hashes in [0, 1]; disjoint ranges share no
    document."""

    @property
    def name(self) -> str:
        """The folder of its plans, such as `128` or `512-0.9-1.0`; unrounded, so that similar ranges stay distinct."""
        low, high = self.document_range
        return f"{self.length}" if (low, high) == (0.0, 1.0) else f"{self.length}-{low!r}-{high!r}"


@dataclass(frozen=True)
class ImportedData:
    """External data that a phase trains on, as specified in the recipe."""

    phase: int
    path: Path
    length: int
    """Maximum length of an example, special tokens included (tokens)."""
    masking: MaskingConfig
    quarantine: bool
    """Whether corrupt files are skipped instead of raising an error."""
    files: OwnFiles | None = None
    """How to read its files if they hold the examples of a task; None: finished examples."""

    @property
    def key(self) -> str:
        """The recipe section, for messages."""
        return f"train.phases.{self.phase}"

    @property
    def input(self) -> str:
        """Its name among the inputs of the examples artifact."""
        return f"data {self.phase}"

    @property
    def test_input(self) -> str:
        """The name, among the inputs of the examples artifact, of the accompanying files that are not for training."""
        return f"test data {self.phase}"

    @property
    def folder(self) -> str:
        """The folder of the examples artifact that holds it."""
        return f"imported/{self.phase}"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that determine the examples, besides the files."""
        if self.files is None:
            return {"length": self.length, "quarantine": self.quarantine}
        return dict(self.files.settings)


class TextsConfig(Section):
    """Facts about the texts for a run without `[corpus]`; imported files do not carry them."""

    language: str = ""
    """Language of the texts for the model card, as in `corpus.language`; empty: not stated."""

    licence: ShownText = ""
    """Licence of the texts for the model card; empty: "unknown"."""


@dataclass(frozen=True)
class MicroBatching:
    """How the examples of a rank are divided into micro-batches."""

    micro_batch: int
    """Maximum number of examples per micro-batch; with `row_tokens`, of rows that each hold several examples."""
    row_tokens: int = 0
    """Capacity of a row that examples are packed into (tokens); 0: one example per row."""
    micro_tokens: int = 0
    """Maximum number of tokens per micro-batch, which takes as many examples as fit; 0: `micro_batch` is the limit."""


class ExamplesConfig(Section):
    """How examples are built from documents (Devlin et al. 2019 §3.1; the published create_pretraining_data.py)."""

    passes: int = Field(10, ge=1, le=100)
    """Number of plans per set: how often each document is split into examples, each time with new random numbers (the
    originals' dupe factor)."""

    plan: Literal["next-sentence", "sentence-order", "doc-sentences", "full-sentences"] = "next-sentence"
    """What an example is: a pair labelled random or next (BERT), a pair labelled swapped or not (ALBERT), or
    unlabelled consecutive sentences from one document or across documents (RoBERTa)."""

    short_seq_prob: float = Field(0.1, ge=0.0, le=1.0)
    """Probability of a shorter target length, uniform from 2 tokens up; drawn once per document, or with
    `plan = "full-sentences"` once per example."""

    random_next_prob: float = Field(0.5, ge=0.0, le=1.0)
    """Probability that the second segment comes from another document (for chunks of one sentence it always does)."""

    random_label: Literal["nvidia", "google"] = "nvidia"
    """Label of a pair for which all 10 tries drew its own document: `nvidia` labels it not random, `google` random."""

    heldout: float = Field(0.01, gt=0.0, lt=1.0)
    """Share of the documents held out for evaluation, chosen by a hash of each document's text alone. Without
    `[corpus]`: share of the examples of `data`, chosen by their ids, if no test files accompany them."""

    seed: int = Field(12345, ge=0)
    """Seed of all random decisions of the plans."""

    workers: int = runtime_only(0, ge=0)
    """Number of worker processes; 0: one per processor."""

    @model_validator(mode="after")
    def _random_pairs_are_of_one_plan(self) -> Self:
        # A setting without effect is rejected, not ignored.
        names = ("random_next_prob", "random_label")
        given = [name for name in names if getattr(self, name) != type(self).model_fields[name].default]
        if given and self.plan != "next-sentence":
            raise ValueError(f"{' and '.join(given)} have an effect only with plan = next-sentence, not {self.plan}")
        return self

    @property
    def pairs(self) -> bool:
        """Whether examples are labelled pairs of segments."""
        return self.plan in PAIRS


def sections(
    config: ExamplesConfig, sets: tuple[PlanSet, ...], imported: Sequence[ImportedData] = ()
) -> dict[str, Any]:
    """The settings that determine the examples: plans for each of `sets`, and the data of `imported`."""
    settings: dict[str, Any] = {"examples": config, "train": {"phases": distinct(sets)}}
    # Without masking: masks are drawn with each batch, so changing them rebuilds nothing (decision 0015).
    return settings | {data.key: data.settings for data in imported}


def distinct(sets: tuple[PlanSet, ...]) -> tuple[PlanSet, ...]:
    """The sets without duplicates, in order."""
    return tuple(dict.fromkeys(sets))
