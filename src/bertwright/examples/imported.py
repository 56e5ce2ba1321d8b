"""Imported examples: as with plans, each epoch is a separate permutation of all of them.

Imported tokenised documents are converted to a store and plans and loaded like the project's own.

Masks that the examples already have are used unchanged. Otherwise masks are drawn as for the project's own examples,
again in every epoch or, with `masking.static`, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed
from bertwright.core.shapes import Count
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PAIRS, ImportedData, MaskingConfig, PlanSet
from bertwright.examples.example_set import ExampleSet, Ids, Selection, StepCounts
from bertwright.examples.instances import Instances, dtypes, ends, gather
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.masking import Masking
from bertwright.examples.planned import open_loader
from bertwright.examples.store import map_file
from bertwright.examples.vocabulary import Vocabulary


class _Facts(TypedDict):
    examples: Count
    tokens: Count
    static: bool


_FACTS = TypeAdapter(_Facts)


@dataclass(frozen=True)
class ImportedExamples(ExampleSet):
    """The memory-mapped examples of a phase's data; see `instances` for their layout, and `ExampleSet`."""

    columns: dict[str, NDArray[Any]]
    facts: _Facts
    vocabulary: Vocabulary
    length: int
    """Maximum length of an example, special tokens included (tokens)."""
    masking: MaskingConfig
    pairs: bool
    """Whether their labels are those of pairs: the files do not say what theirs mean (decision 0018)."""

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [int(self.facts["examples"])]

    @property
    def arrays(self) -> Iterable[NDArray[Any]]:
        """As `ExampleSet.arrays`: of any shape."""
        return self.columns.values()

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`: [N] tokens of each example."""
        return self._between("cu_seqlens", some.rows)

    def counts(self, some: Selection) -> StepCounts:
        """As `ExampleSet.counts`, without drawing masks where the lengths determine them."""
        lengths, masking = self.lengths(some), self._masking(some)
        if self.facts["static"]:
            predictions = self._between("cu_predictions", some.rows)
        elif masking.counted:
            # Special tokens are not masked; only the ids tell how many an example has.
            found = self._take(some.rows)
            specials = np.diff(ends(self._special(found.token_ids))[found.cu_seqlens])
            predictions = masking.counts(lengths, specials)
        else:
            return super().counts(some)
        labelled = self._labelled(np.take(self.columns["next_sentence_labels"], some.rows))
        return StepCounts(int(predictions.sum()), int(labelled.sum()), int(lengths.sum()))

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`."""
        found = self._take(some.rows)
        tokens, lengths, begins = found.token_ids.astype(np.int64), found.lengths, found.cu_seqlens[:-1]
        if self.facts["static"]:
            chosen, labels = found.predicted, found.labels.astype(np.int64)
        else:
            inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
            special = ~inside
            special[inside] = self._special(tokens)
            masking = self._masking(some)
            sequence, position = masking.choose(some.keys, lengths, special, tokens)
            chosen = begins[sequence] + position
            labels = tokens[chosen]
            tokens[chosen] = masking.replace(some.keys[sequence], position, labels)
        return MicroBatch(
            token_ids=tokens,
            position_ids=np.arange(len(tokens)) - np.repeat(begins, lengths),
            segment_ids=found.segment_ids.astype(np.int64),
            cu_seqlens=found.cu_seqlens.astype(np.int32),
            cu_rows=found.cu_seqlens.astype(np.int32),
            max_row=int(lengths.max(initial=0)),
            prediction_positions=chosen,
            labels=labels,
            weights=np.ones(len(labels), np.float32),
            # The loss needs a valid class; unlabelled examples get class 0 and weight 0.
            sequence_labels=np.maximum(found.next_sentence_labels, 0).astype(np.int64),
            sequence_weights=self._labelled(found.next_sentence_labels).astype(np.float32),
        )

    def _between(self, name: str, rows: Ids) -> Ids:
        sizes: Ids = (self.columns[name][rows + 1] - self.columns[name][rows]).astype(np.int64)
        return sizes

    def _take(self, rows: Ids) -> Instances:
        tokens, cu_seqlens = gather(self.columns["cu_seqlens"], rows)
        predictions, cu_predictions = gather(self.columns["cu_predictions"], rows)
        return Instances(
            np.take(self.columns["tokens"], tokens).astype(np.int32),
            cu_seqlens,
            np.take(self.columns["second"], rows).astype(np.int32),
            np.take(self.columns["positions"], predictions).astype(np.int32),
            np.take(self.columns["labels"], predictions).astype(np.int32),
            cu_predictions,
            np.take(self.columns["next_sentence_labels"], rows),
        )

    def _masking(self, some: Selection) -> Masking:
        return Masking.at(self.masking, some.step, self.length, self.vocabulary)

    def _special(self, tokens: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        # Not only [CLS] and [SEP]: a tokenizer that reads "[MASK]" in an article as the mask leaves its id in the text.
        return np.isin(tokens, self.vocabulary.special)

    def _labelled(self, labels: NDArray[np.int8]) -> NDArray[np.bool_]:
        labelled: NDArray[np.bool_] = self.pairs & (labels >= 0)
        return labelled


def open_imported(examples: Artifact, data: ImportedData, settings: LoaderSettings, vocab: Artifact) -> Loader:
    """The training batches of a phase from imported data.

    Raises `ArtifactError` if the stage `examples` did not import it, or did with another vocabulary than `vocab`.
    """
    if examples.names(f"{data.folder}/store/"):
        return open_loader(examples, PlanSet(length=data.length), settings, vocab, f"{data.folder}/")
    vocabulary = Vocabulary.open(examples, vocab)
    if f"{data.folder}/facts.json" not in examples.names():
        raise ArtifactError(
            f"{data.key}.data: {data.path} is not a finished examples folder, and {examples.path} contains "
            "nothing made from it. Restore it, and run the stage examples again."
        )
    kinds = dtypes(vocabulary.size) | {"cu_seqlens": "<u8", "cu_predictions": "<u8"}
    columns = {name: map_file(examples.file(f"{data.folder}/{name}"), kind) for name, kind in kinds.items()}
    facts = read_typed(examples.file(f"{data.folder}/facts.json"), _FACTS)
    # Whether labels are used depends on the run's task.
    pairs = examples.manifest["config"]["examples"]["plan"] in PAIRS
    found = ImportedExamples(columns, facts, vocabulary, settings.length, settings.masking, pairs)
    return Loader(found, settings)
