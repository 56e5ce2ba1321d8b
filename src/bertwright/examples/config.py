"""The recipe section `[examples]`, and what a training phase asks of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bertwright.core.config import Section, how


def _rising(share: tuple[float, float]) -> tuple[float, float]:
    if not 0.0 <= share[0] < share[1] <= 1.0:
        raise ValueError(f"{list(share)} must rise within 0 and 1, such as [0.0, 0.9]")
    return share


Length = Annotated[int, Field(ge=8, le=32_768)]
"""Longest example, special tokens included (tokens)."""
Share = Annotated[tuple[float, float], AfterValidator(_rising)]
"""Share of the documents, as a half-open range of their hashes in [0, 1]; disjoint ranges share none."""


class PlanSet(Section):
    """The examples of one training phase: a length and a share of the documents."""

    length: Length
    """Longest example, special tokens included (tokens)."""

    documents: Share = (0.0, 1.0)
    """Share of the training documents, as a half-open range of their hashes in [0, 1]; disjoint ranges share none."""

    @property
    def name(self) -> str:
        """The folder of its plans, such as `128` or `512-0.9-1.0`: the exact numbers, so near shares stay apart."""
        low, high = self.documents
        return f"{self.length}" if (low, high) == (0.0, 1.0) else f"{self.length}-{low!r}-{high!r}"


class ExamplesConfig(Section):
    """How examples are made of documents (Devlin et al. 2019 §3.1; the published create_pretraining_data.py)."""

    passes: int = Field(10, ge=1, le=100)
    """Plans per set: how often each document is walked with fresh random numbers (the originals' dupe factor)."""

    next_sentence: bool = True
    """Sentence pairs with a next-sentence label; false: one segment of consecutive sentences, no label."""

    short_seq_prob: float = Field(0.1, ge=0.0, le=1.0)
    """Probability that a document is walked with a shorter target length, uniform from 2 tokens up."""

    random_next_prob: float = Field(0.5, ge=0.0, le=1.0)
    """Probability that the second segment comes from another document (chunks of one sentence always do)."""

    random_label: Literal["nvidia", "google"] = "nvidia"
    """Label of a pair whose 10 tries all hit its own document: `nvidia` says not random, `google` says random."""

    heldout: float = Field(0.01, gt=0.0, lt=1.0)
    """Share of the documents kept for evaluation, decided by a hash of each document's text alone."""

    seed: int = Field(12345, ge=0)
    """Seed of all random decisions of the pair plans."""

    workers: int = how(0, ge=0)
    """Processes (0: one per processor)."""
