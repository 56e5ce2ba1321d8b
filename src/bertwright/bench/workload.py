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
from pydantic import TypeAdapter

from bertwright.core.rng import below, fold, key
from bertwright.examples.batch import MicroBatch, unmasked
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching
from bertwright.examples.example_set import ExampleSet
from bertwright.examples.labelled.data import Labelled, LabelledExamples
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.planned import PlannedExamples
from bertwright.examples.plans import Plans
from bertwright.examples.store import Documents, Store
from bertwright.examples.vocabulary import Vocabulary
from bertwright.model.config import ModelConfig, NetworkConfig

VOCABULARY = Vocabulary(hash="", size=30_522, pad=0, unk=1, cls=2, sep=3, mask=4, unused=(), continues=())
Name = Literal["full-128", "pairs-128", "half-512", "base-128", "modern-128", "modern-1024", "phrases-128"]
Side = Literal["bertwright", "trainer", "trainer-tuned"]
Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Workload:
    """One kind of training."""

    about: str
    size: str
    """Of the network; that of phrases is MiniLM's instead (Wang et al. 2020, with six layers)."""
    length: int
    """Longest example (tokens)."""
    batch: int
    """Examples per step."""
    plan: Literal["next-sentence", "full-sentences", "doc-sentences", "classes"]
    """How examples are made of sentences; `classes`: each is a text of one of two classes."""
    sentences: tuple[int, int]
    """Minimum and maximum number of sentences in a document."""
    tokens: tuple[int, int] = (5, 39)
    """Minimum and maximum number of tokens in a sentence."""
    family: str = "bert"
    """Of the network."""

    @property
    def pairs(self) -> bool:
        """Whether examples are pairs with a label."""
        return self.plan == "next-sentence"

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of texts; empty: pre-training."""
        return ("negative", "positive") if self.plan == "classes" else ()

    def network(self, training: Training) -> NetworkConfig:
        """The network that is trained."""
        dropped = {"dropout": training.dropout, "attention_dropout": training.attention_dropout}
        section = _SECTION.validate_python({"kind": self.family, "size": self.size, **dropped})
        network = section.resolve(VOCABULARY.size, self.pairs, self.labels)
        return network.model_copy(update=_MINILM) if self.labels else network


_SECTION = TypeAdapter[ModelConfig](ModelConfig)
_MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
_PHRASES = (1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 11, 12, 14, 16, 18, 21, 25, 31, 64)
"""Tokens of SST-2's training phrases, without special ones: the shortest, then the longest of each twentieth."""
WORKLOADS: dict[Name, Workload] = {
    "full-128": Workload("full blocks of 128", "mini", 128, 32, "full-sentences", (40, 40), (126, 126)),
    "pairs-128": Workload("sentence pairs at 128", "mini", 128, 32, "next-sentence", (1, 40)),
    "half-512": Workload("documents that fill half of 512", "mini", 512, 16, "doc-sentences", (1, 22)),
    "base-128": Workload("BERT-base, full blocks of 128", "base", 128, 16, "full-sentences", (40, 40), (126, 126)),
    "modern-128": Workload(
        "ModernBERT, full blocks of 128", "mini", 128, 32, "full-sentences", (40, 40), (126, 126), "modern"
    ),
    "modern-1024": Workload(
        "ModernBERT, full blocks of 1,024", "mini", 1024, 4, "full-sentences", (40, 40), (1022, 1022), "modern"
    ),
    "phrases-128": Workload("fine-tuning on phrases as long as SST-2's", "base", 128, 32, "classes", (1, 1), (1, 64)),
}
"""By the names that `--workload` accepts."""


@dataclass(frozen=True)
class Training:
    """How a side trains."""

    precision: Precision = "fp32"
    threads: int = 2
    dropout: float | None = None
    """Dropout probability of hidden states; None: that of the family, 0.1 for BERT and 0 for ModernBERT."""
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
    examples = _phrases(workload) if workload.labels else _planned(workload, tokens)
    batching = MicroBatching(micro_batch or workload.batch, workload.length if packing else 0)
    return Loader(
        examples, LoaderSettings(workload.length, MaskingConfig(), workload.batch, batching, seed=1, phase="0")
    )


def _planned(workload: Workload, tokens: int) -> ExampleSet:
    assert workload.plan != "classes"
    lengths = _between(workload.tokens, "lengths", tokens // workload.tokens[0])
    counts = _between(workload.sentences, "counts", len(lengths))
    # As many counts as sentences were drawn: the documents that the sentences suffice for remain.
    counts = counts[np.cumsum(counts) <= len(lengths)]
    lengths = lengths[: counts.sum()]
    ids = _ids(int(lengths.sum()))
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
    return PlannedExamples(store, Plans([rows], np.array([[len(rows)]])), workload.length, MaskingConfig())


def _phrases(workload: Workload) -> ExampleSet:
    """Phrases with lengths in the proportions of `_PHRASES`, of random classes."""
    draws = below(key("phrases"), np.arange(4096), 20 * 1000)
    bounds = np.array(_PHRASES)
    twentieth, place = draws // 1000, draws % 1000
    first = bounds[twentieth] + (bounds[twentieth + 1] - bounds[twentieth] + 1) * place // 1000
    labels = below(key("labels"), np.arange(len(first)), 2).astype(np.float32)
    labelled = Labelled(_ids(int(first.sum())), first.astype(np.uint32), np.zeros(len(first), np.uint32), labels)
    return LabelledExamples(labelled, np.cumsum(first) - first, workload.length, False, 2, VOCABULARY)


def _ids(number: int) -> NDArray[np.uint16]:
    # From 5 on, because the ids before it are the special entries.
    return (5 + below(key("ids"), np.arange(number), VOCABULARY.size - 5)).astype("<u2")


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
    """Label of its pair, or class; 0 if it has none."""


def examples_of(batch: MicroBatch) -> Iterator[Example]:
    """The examples of a batch with masking undone."""
    tokens = unmasked(batch)
    for number, (first, stop) in enumerate(zip(batch.cu_seqlens[:-1], batch.cu_seqlens[1:], strict=True)):
        label = int(batch.sequence_labels[number])
        yield Example(tokens[first:stop], batch.segment_ids[first:stop], label)
