"""A small made-up corpus and what the stages make of it."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import zstandard

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.log import SILENT, Silent
from bertwright.core.rng import bits, key
from bertwright.core.stage_context import StageContext
from bertwright.examples import run as examples_stage
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.run_tasks import Inputs
from bertwright.vocab import run as vocab_stage
from bertwright.vocab.config import VocabConfig

SYLLABLES = ["ba", "cé", "di", "ő", "fu", "gár", "ho", "kí", "lö", "mu", "nyel", "zsa"]
Text = list[list[str]]  # documents of sentences


class Said(Silent):
    """Keeps what is said."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def say(self, message: str) -> None:
        self.said.append(message)


def text(documents: int, seed: int = 1) -> Text:
    """Documents of 1 to 12 sentences of 2 to 15 words, the same for the same arguments."""
    draws = drawn(key(seed, "made text"))

    def number(low: int, high: int) -> int:
        return low + (next(draws) * (high - low + 1) >> 32)

    def word() -> str:
        return "".join(SYLLABLES[number(0, len(SYLLABLES) - 1)] for _ in range(number(1, 3)))

    def sentence() -> str:
        return " ".join(word() for _ in range(number(2, 15))).capitalize() + "."

    return [[sentence() for _ in range(number(1, 12))] for _ in range(documents)]


def drawn(stream: int, block: int = 4096) -> Iterator[int]:
    """The numbers of a stream in [0, 2^32), computed a block at a time."""
    for first in itertools.count(0, block):
        yield from (bits(stream, np.arange(first, first + block)) >> np.uint64(32)).tolist()


def corpus(folder: Path, shards: list[Text]) -> Artifact:
    """A corpus artifact with these shards."""

    sentences = [sentence for documents in shards for document in documents for sentence in [*document, ""]]

    def make(draft: Path) -> dict[str, int]:
        (draft / "shards").mkdir(parents=True, exist_ok=True)
        for number, documents in enumerate(shards):
            lines = "".join("".join(f"{sentence}\n" for sentence in document) + "\n" for document in documents)
            (draft / "shards" / f"{number:05}.txt.zst").write_bytes(zstandard.compress(lines.encode()))
        return {
            "documents": sum(map(len, shards)),
            "sentences": len(sentences),
            "text_bytes": sum(len(s.encode()) + 1 for s in sentences),
        }

    return build(folder, Identity("corpus", 1, {"shards": shards}, {}), SILENT, make)


def vocabulary(folder: Path, source: Artifact, size: int = 300) -> Artifact:
    return vocab_stage.run(VocabConfig(size=size, unused=3), source, folder)


SETS = (
    PlanSet(length=64),
    PlanSet(length=32, document_range=(0.0, 0.9)),
    PlanSet(length=32, document_range=(0.9, 1.0)),
)


def examples(folder: Path, **changes: object) -> Artifact:
    """The examples of two shards of 60 documents, with everything they were made from beside them."""
    source = corpus(folder / "corpus", [text(60, seed=1), text(60, seed=2)])
    config = ExamplesConfig.model_validate({"passes": 3, "heldout": 0.1, "workers": 1, **changes})
    inputs = Inputs(source, vocabulary(folder / "vocab", source))
    return examples_stage.run(config, SETS, inputs, StageContext(folder / "examples"))


def rows_of(batch: MicroBatch) -> list[tuple[bytes, bytes, bytes, int]]:
    """What a batch says of each of its sequences: ids, predicted positions, labels, next-sentence label."""
    found = []
    for s in range(len(batch.cu_seqlens) - 1):
        first, last = batch.cu_seqlens[s], batch.cu_seqlens[s + 1]
        mine = (batch.prediction_positions >= first) & (batch.prediction_positions < last)
        parts = (batch.token_ids[first:last], batch.prediction_positions[mine] - first, batch.labels[mine])
        found.append((*(np.asarray(part, np.int64).tobytes() for part in parts), int(batch.sequence_labels[s])))
    return found
