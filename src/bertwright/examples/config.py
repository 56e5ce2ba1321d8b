"""The recipe section `[examples]`, and what a training phase asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bertwright.core.config import Section, runtime_only
from bertwright.examples.labelled.tasks import LabelledTexts
from bertwright.examples.masking_config import MaskingConfig

VERSION = 6
"""Raised when the code of the stage changes its result."""


def _rising(bounds: tuple[float, float]) -> tuple[float, float]:
    if not 0.0 <= bounds[0] < bounds[1] <= 1.0:
        raise ValueError(f"{list(bounds)} must rise within 0 and 1, such as [0.0, 0.9]")
    return bounds


PAIRS = {"next-sentence": "nsp", "sentence-order": "sop"}
"""The plans whose examples are pairs, and the names of what is learnt from their labels."""
Length = Annotated[int, Field(ge=8, le=32_768)]
"""Longest example, special tokens included (tokens)."""
DocumentRange = Annotated[tuple[float, float], AfterValidator(_rising)]
"""Share of the documents, as a half-open range of their hashes in [0, 1]; disjoint ranges share none."""


class PlanSet(Section):
    """The examples of one training phase: a length and a share of the documents."""

    length: Length
    """Longest example, special tokens included (tokens)."""

    document_range: DocumentRange = (0.0, 1.0)
    """Share of the training documents, as a half-open range of their hashes in [0, 1]; disjoint ranges share none."""

    @property
    def name(self) -> str:
        """The folder of its plans, such as `128` or `512-0.9-1.0`: the exact numbers, so near shares stay apart."""
        low, high = self.document_range
        return f"{self.length}" if (low, high) == (0.0, 1.0) else f"{self.length}-{low!r}-{high!r}"


@dataclass(frozen=True)
class ImportedData:
    """Examples in a format of the field that a phase trains on, as the recipe names them."""

    phase: int
    path: Path
    length: int
    """Longest example, special tokens included (tokens)."""
    masking: MaskingConfig
    quarantine: bool
    """Whether damaged files are left out instead of being an error."""
    texts: LabelledTexts | None = None
    """How its files are read where they hold labelled texts, not finished examples."""

    @property
    def key(self) -> str:
        """The section of the recipe, for messages."""
        return f"train.phases.{self.phase}"

    @property
    def input(self) -> str:
        """Its name among the inputs of the examples artifact."""
        return f"data {self.phase}"

    @property
    def test_input(self) -> str:
        """The name, among the inputs of the examples artifact, of the files beside it that are not for training."""
        return f"test data {self.phase}"

    @property
    def folder(self) -> str:
        """Where the examples artifact keeps it."""
        return f"imported/{self.phase}"

    @property
    def settings(self) -> dict[str, Any]:
        """What of it decides the examples, beside its files."""
        if self.texts is None:
            return {"length": self.length, "quarantine": self.quarantine}
        columns = [list(each.names) for each in self.texts.columns]
        return {"labels": list(self.texts.labels), "columns": columns, "heldout": list(self.texts.heldout)}


class TextsConfig(Section):
    """What is to be said of the texts where there is no `[corpus]`: files that were made elsewhere do not say it."""

    language: str = ""
    """Language of the texts, as in `corpus.language`, for the model card; empty: not said."""

    licence: str = ""
    """Licence of the texts, for the model card; empty: "unknown"."""


@dataclass(frozen=True)
class MicroBatching:
    """How the examples of a rank become micro-batches."""

    micro_batch: int
    """Most examples of a micro-batch; with `row_tokens`, rows of several examples."""
    row_tokens: int = 0
    """Room of a row that examples are packed into (tokens); 0: an example is a row."""
    micro_tokens: int = 0
    """Most tokens of a micro-batch, which then takes as many examples as fit; 0: `micro_batch` counts."""


class ExamplesConfig(Section):
    """How examples are made of documents (Devlin et al. 2019 §3.1; the published create_pretraining_data.py)."""

    passes: int = Field(10, ge=1, le=100)
    """Plans per set: how often each document is walked with fresh random numbers (the originals' dupe factor)."""

    plan: Literal["next-sentence", "sentence-order", "doc-sentences", "full-sentences"] = "next-sentence"
    """What an example is: a pair labelled random or next (BERT), a pair labelled swapped or not (ALBERT), or
    consecutive sentences without a label, of one document or across documents (RoBERTa)."""

    short_seq_prob: float = Field(0.1, ge=0.0, le=1.0)
    """Probability that a document is walked with a shorter target length, uniform from 2 tokens up."""

    random_next_prob: float = Field(0.5, ge=0.0, le=1.0)
    """Probability that the second segment comes from another document (chunks of one sentence always do)."""

    random_label: Literal["nvidia", "google"] = "nvidia"
    """Label of a pair whose 10 tries all hit its own document: `nvidia` says not random, `google` says random."""

    heldout: float = Field(0.01, gt=0.0, lt=1.0)
    """Share of the documents kept for evaluation, decided by a hash of each document's text alone. Without `[corpus]`
    share of the examples of `data`, by their ids, where no files for testing lie with them."""

    seed: int = Field(12345, ge=0)
    """Seed of all random decisions of the pair plans."""

    workers: int = runtime_only(0, ge=0)
    """Processes (0: one per processor)."""

    @model_validator(mode="after")
    def _random_pairs_are_of_one_plan(self) -> Self:
        # A setting that would do nothing is refused, not ignored.
        names = ("random_next_prob", "random_label")
        given = [name for name in names if getattr(self, name) != type(self).model_fields[name].default]
        if given and self.plan != "next-sentence":
            raise ValueError(f"{' and '.join(given)} mean something with plan = next-sentence only, not {self.plan}")
        return self

    @property
    def pairs(self) -> bool:
        """Whether examples are labelled pairs of segments."""
        return self.plan in PAIRS


def sections(
    config: ExamplesConfig, sets: tuple[PlanSet, ...], imported: Sequence[ImportedData] = ()
) -> dict[str, Any]:
    """The settings that the examples are a function of: plans for each of `sets`, and the data of `imported`."""
    settings: dict[str, Any] = {"examples": config, "train": {"phases": distinct(sets)}}
    # Not its masking: masks are drawn when a batch is, so other masks rebuild nothing (decision 0015).
    return settings | {data.key: data.settings for data in imported}


def distinct(sets: tuple[PlanSet, ...]) -> tuple[PlanSet, ...]:
    """Each set once, in order."""
    return tuple(dict.fromkeys(sets))
