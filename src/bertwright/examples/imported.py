"""Loads imported examples: as with plans, each epoch is a separate permutation of all of them.

Imported tokenised documents are converted to a store and plans and loaded like the project's own.

Masks that the examples already have are used unchanged. Otherwise masks are drawn as for the project's own examples,
again in every epoch or, with `masking.static`, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed
from bertwright.core.rng import fold, key
from bertwright.core.shapes import Count
from bertwright.examples.batch import MicroBatch
from bertwright.examples.collate import split
from bertwright.examples.config import PAIRS, ImportedData, PlanSet
from bertwright.examples.instances import Instances, dtypes, ends, gather
from bertwright.examples.loader import Loader, LoaderSettings, StepCounts, together
from bertwright.examples.masking import Ids, Keys, Masking
from bertwright.examples.packing import Assignment, assign_to_ranks
from bertwright.examples.plan_loader import open_loader
from bertwright.examples.plans import Epochs
from bertwright.examples.store import map_file, refuse_cut
from bertwright.examples.vocabulary import Vocabulary


class _Facts(TypedDict):
    examples: Count
    tokens: Count
    static: bool


_FACTS = TypeAdapter(_Facts)


@dataclass(frozen=True)
class Imported:
    """The memory-mapped arrays of a phase's data; see `instances` for their layout."""

    arrays: dict[str, NDArray[Any]]
    facts: _Facts

    @classmethod
    def open(cls, examples: Artifact, data: ImportedData, vocabulary_size: int) -> Imported:
        """Open the examples that the stage `examples` imported for a phase."""
        if f"{data.folder}/facts.json" not in examples.names():
            raise ArtifactError(
                f"{data.key}.data: {data.path} is not a finished examples folder, and {examples.path} contains "
                "nothing made from it. Restore it, and run the stage examples again."
            )
        kinds = dtypes(vocabulary_size) | {"cu_seqlens": "<u8", "cu_predictions": "<u8"}
        arrays = {name: map_file(examples.file(f"{data.folder}/{name}"), kind) for name, kind in kinds.items()}
        return cls(arrays, read_typed(examples.file(f"{data.folder}/facts.json"), _FACTS))

    def lengths(self, rows: Ids) -> Ids:
        """[N] number of tokens of each of the rows [N]."""
        return self._sizes("cu_seqlens", rows)

    def predictions(self, rows: Ids) -> Ids:
        """[N] number of static predictions of each of the rows [N]."""
        return self._sizes("cu_predictions", rows)

    def take(self, rows: Ids) -> Instances:
        """The rows [N] as N examples."""
        tokens, cu_seqlens = gather(self.arrays["cu_seqlens"], rows)
        predictions, cu_predictions = gather(self.arrays["cu_predictions"], rows)
        return Instances(
            np.take(self.arrays["tokens"], tokens).astype(np.int32),
            cu_seqlens,
            np.take(self.arrays["second"], rows).astype(np.int32),
            np.take(self.arrays["positions"], predictions).astype(np.int32),
            np.take(self.arrays["labels"], predictions).astype(np.int32),
            cu_predictions,
            np.take(self.arrays["next_sentence_labels"], rows),
        )

    def _sizes(self, name: str, rows: Ids) -> Ids:
        sizes: Ids = (self.arrays[name][rows + 1] - self.arrays[name][rows]).astype(np.int64)
        return sizes


class ImportedLoader:
    """The training batches of a phase from imported examples; see `loader.Loader`."""

    def __init__(self, imported: Imported, vocabulary: Vocabulary, settings: LoaderSettings, pairs: bool) -> None:
        self.settings = settings
        self._imported, self._vocabulary, self._pairs = imported, vocabulary, pairs
        self._epochs = Epochs(np.array(self.epoch_sizes), settings.seed, settings.phase)

    @property
    def epoch_sizes(self) -> list[int]:
        """The size of the only pass: every epoch takes all examples."""
        return [int(self._imported.facts["examples"])]

    @property
    def mean_tokens(self) -> float:
        """Mean length of an example, special tokens included."""
        return float(self._imported.facts["tokens"] / self._imported.facts["examples"])

    def step(self, step: int, rank: int = 0, world: int = 1) -> list[MicroBatch]:
        """The micro-batches of `rank` in global step `step` (from 0); every rank has the same number of them."""
        rows, keys = self._rows(step)
        batches: list[MicroBatch] = []
        for group in together(self._assignments(rows, rank, world)):
            group_examples = np.concatenate([assignment.examples for assignment in group])
            batch = self._collated(rows[group_examples], keys[group_examples], self._masking(step))
            batches += split(batch, [assignment.row_sizes for assignment in group])
        return batches

    def counts(self, step: int, rank: int = 0, world: int = 1) -> StepCounts:
        """The counts of `rank` in `step`, without drawing masks where the lengths determine them."""
        rows, _ = self._rows(step)
        own_rows = rows[np.concatenate([assignment.examples for assignment in self._assignments(rows, rank, world)])]
        lengths, masking = self._imported.lengths(own_rows), self._masking(step)
        if self._imported.facts["static"]:
            predictions = int(self._imported.predictions(own_rows).sum())
        elif masking.counted:
            # Special tokens are not masked; only the ids tell how many an example has.
            some = self._imported.take(own_rows)
            specials = np.diff(ends(self._special(some.token_ids))[some.cu_seqlens])
            predictions = int(masking.counts(lengths, specials).sum())
        else:
            predictions = sum(batch.counts.predictions for batch in self.step(step, rank, world))
        labels = np.take(self._imported.arrays["next_sentence_labels"], own_rows)
        return StepCounts(predictions, int((self._pairs & (labels >= 0)).sum()), int(lengths.sum()))

    def with_micro_batch(self, micro_batch: int) -> ImportedLoader:
        """As `Loader.with_micro_batch`."""
        settings = self.settings.with_micro_batch(micro_batch)
        return ImportedLoader(self._imported, self._vocabulary, settings, self._pairs)

    def _rows(self, step: int) -> tuple[Ids, Keys]:
        """The examples of a global step, and the mask key of each."""
        settings = self.settings
        refuse_cut(self._imported.arrays.values())
        places = np.arange(settings.batches.before(step), settings.batches.before(step + 1))
        epochs = self._epochs.locate(places)
        stream = partial(key, settings.seed, "pass" if settings.masking.static else "draw", settings.phase)
        # Static masks are keyed by the only pass, so they repeat in every epoch.
        keys = [fold(stream(0 if settings.masking.static else epoch), rows) for epoch, _, rows in epochs]
        return np.concatenate([rows for _, _, rows in epochs]), np.concatenate(keys)

    def _assignments(self, rows: Ids, rank: int, world: int) -> list[Assignment]:
        return assign_to_ranks(self._imported.lengths(rows), rank, world, self.settings.micro_batching)

    def _masking(self, step: int) -> Masking:
        config = self.settings.masking
        return Masking(config, config.rate_at(step), config.most(self.settings.length), self._vocabulary)

    def _special(self, tokens: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        # Not only [CLS] and [SEP]: a tokenizer that reads "[MASK]" in an article as the mask leaves its id in the text.
        return np.isin(tokens, self._vocabulary.special)

    def _collated(self, rows: Ids, keys: Keys, masking: Masking) -> MicroBatch:
        some = self._imported.take(rows)
        tokens, lengths, begins = some.token_ids.astype(np.int64), some.lengths, some.cu_seqlens[:-1]
        if self._imported.facts["static"]:
            chosen, labels = some.predicted, some.labels.astype(np.int64)
        else:
            inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
            special = ~inside
            special[inside] = self._special(tokens)
            sequence, position = masking.choose(keys, lengths, special, tokens)
            chosen = begins[sequence] + position
            labels = tokens[chosen]
            tokens[chosen] = masking.replace(keys[sequence], position, labels)
        return MicroBatch(
            token_ids=tokens,
            position_ids=np.arange(len(tokens)) - np.repeat(begins, lengths),
            segment_ids=some.segment_ids.astype(np.int64),
            cu_seqlens=some.cu_seqlens.astype(np.int32),
            cu_rows=some.cu_seqlens.astype(np.int32),
            max_row=int(lengths.max(initial=0)),
            prediction_positions=chosen,
            labels=labels,
            weights=np.ones(len(labels), np.float32),
            # The loss needs a valid class; unlabelled examples get class 0 and weight 0.
            sequence_labels=np.maximum(some.next_sentence_labels, 0).astype(np.int64),
            sequence_weights=(self._pairs & (some.next_sentence_labels >= 0)).astype(np.float32),
        )


def open_imported(examples: Artifact, data: ImportedData, settings: LoaderSettings, vocab: Artifact) -> Loader:
    """The training batches of a phase from imported data; `ArtifactError` if it has another vocabulary than `vocab`."""
    if examples.names(f"{data.folder}/store/"):
        return open_loader(examples, PlanSet(length=data.length), settings, vocab, f"{data.folder}/")
    vocabulary = Vocabulary.open(examples, vocab)
    # Whether labels are used depends on the run's task: the files do not say what theirs mean (decision 0018).
    pairs = examples.manifest["config"]["examples"]["plan"] in PAIRS
    return ImportedLoader(Imported.open(examples, data, vocabulary.size), vocabulary, settings, pairs)
