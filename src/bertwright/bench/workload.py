"""What benchmarks train on, and how: networks, lengths, settings, and examples of synthetic text that are the same for
both sides.

Tokens are random numbers, because step time depends on lengths, not on content. Lengths of sentences and documents are
random too, so that the plans produce pairs and blocks like those of a corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import below, fold, key
from bertwright.examples.batch import MicroBatch, unmasked
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.planned import PlannedExamples
from bertwright.examples.plans import Plans
from bertwright.examples.store import Documents, Store
from bertwright.examples.vocabulary import Vocabulary
from bertwright.model.bert.config import SizeName

VOCABULARY = Vocabulary(hash="", size=30_522, pad=0, unk=1, cls=2, sep=3, mask=4, unused=(), continues=())
Name = Literal["full-128", "pairs-128", "half-512", "base-128"]
Side = Literal["bertwright", "trainer", "trainer-tuned"]
Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Workload:
    """One kind of training."""

    about: str
    size: SizeName
    """Of the network."""
    length: int
    """Longest example (tokens)."""
    batch: int
    """Examples per step."""
    plan: Literal["next-sentence", "full-sentences", "doc-sentences"]
    sentences: tuple[int, int]
    """Minimum and maximum number of sentences in a document."""
    tokens: tuple[int, int] = (5, 39)
    """Minimum and maximum number of tokens in a sentence."""

    @property
    def pairs(self) -> bool:
        """Whether examples are pairs with a label."""
        return self.plan == "next-sentence"


WORKLOADS: dict[Name, Workload] = {
    "full-128": Workload("full blocks of 128", "mini", 128, 32, "full-sentences", (40, 40), (126, 126)),
    "pairs-128": Workload("sentence pairs at 128", "mini", 128, 32, "next-sentence", (1, 40)),
    "half-512": Workload("documents that fill half of 512", "mini", 512, 16, "doc-sentences", (1, 22)),
    "base-128": Workload("BERT-base, full blocks of 128", "base", 128, 16, "full-sentences", (40, 40), (126, 126)),
}
"""By the names that `--workload` accepts."""


@dataclass(frozen=True)
class Training:
    """How a side trains."""

    precision: Precision = "fp32"
    threads: int = 2
    dropout: float = 0.1
    """Dropout probability of hidden states."""
    attention_dropout: float = 0.0
    """Dropout probability of attention weights."""


class Step(NamedTuple):
    """The measurements of one step."""

    seconds: float
    processor_seconds: float
    """Summed over all threads."""
    floor: float | None = None
    """Seconds that its operations would take at the speed of the network's matrix products alone, measured right before
    the block of the step; None for a side whose operations we cannot count."""


def loader_of(workload: Workload, micro_batch: int = 0, tokens: int = 400_000, packing: bool = False) -> Loader:
    """The training batches of a workload, from at least `tokens` tokens of synthetic text; the same on every call.

    `micro_batch` counts examples (0: the entire batch), or rows of several examples with `packing`.
    """
    lengths = _between(workload.tokens, "lengths", tokens // workload.tokens[0])
    counts = _between(workload.sentences, "counts", len(lengths))
    # As many counts as sentences were drawn: the documents that the sentences suffice for remain.
    counts = counts[np.cumsum(counts) <= len(lengths)]
    lengths = lengths[: counts.sum()]
    # From 5 on, because the ids before it are the special entries.
    ids = (5 + below(key("ids"), np.arange(lengths.sum()), VOCABULARY.size - 5)).astype("<u2")
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    hashes = fold(key("hashes"), np.arange(len(counts)))
    documents = Documents(ids, lengths.astype(np.uint16), firsts, hashes)
    every = np.ones(len(hashes), np.bool_)
    (rows,) = plan_passes(documents, every, workload.length, ExamplesConfig(plan=workload.plan), 1)
    store = Store(
        **vars(documents),
        starts=documents.token_starts(),
        shard_tokens=np.array([0, len(ids)]),
        vocabulary=VOCABULARY,
    )
    batching = MicroBatching(micro_batch or workload.batch, workload.length if packing else 0)
    settings = LoaderSettings(workload.length, MaskingConfig(), workload.batch, batching, seed=1, phase="0")
    plans = Plans([rows], np.array([[len(rows)]]))
    return Loader(PlannedExamples(store, plans, workload.length, settings.masking), settings)


def _between(bounds: tuple[int, int], name: str, number: int) -> NDArray[np.int64]:
    first, last = bounds
    return first + below(key(name), np.arange(number), last - first + 1)


@dataclass(frozen=True)
class Example:
    """One example in the form that other programs need: before masking."""

    token_ids: NDArray[np.int64]
    """[n]"""
    segment_ids: NDArray[np.int64]
    """[n]"""
    label: int
    """Label of its pair; 0 if it is not a pair."""


def examples_of(batch: MicroBatch) -> Iterator[Example]:
    """The examples of a batch with masking undone."""
    tokens = unmasked(batch)
    for number, (first, stop) in enumerate(zip(batch.cu_seqlens[:-1], batch.cu_seqlens[1:], strict=True)):
        label = int(batch.sequence_labels[number])
        yield Example(tokens[first:stop], batch.segment_ids[first:stop], label)
