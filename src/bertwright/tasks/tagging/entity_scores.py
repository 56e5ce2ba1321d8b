"""The scores of predicted tags: entities by precision, recall and F1, and single words by accuracy.

An entity is found if its first and last word and its type are right. `f1` reads tags strictly, as the package seqeval
does with `mode="strict"`: an entity whose tags break the scheme is none. `conlleval` repairs them as the program of
CoNLL-2000 does, which is seqeval's default. Papers report either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bertwright.tasks.tagging.schemes import Entity, LearnedScheme, read_entities, strict_entities

Tags = Sequence[Sequence[str]]
"""The tags of the words of sentences."""


class Found(NamedTuple):
    """How many entities are right, predicted and actual."""

    right: int
    predicted: int
    actual: int

    @property
    def precision(self) -> float:
        """The share of predicted entities that are right; 0 if none was predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of actual entities that were found; 0 if there are none."""
        return self.right / self.actual if self.actual else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if nothing was found."""
        both = self.predicted + self.actual
        return 2 * self.right / both if both else 0.0


def score_entities(predicted: Tags, actual: Tags, scheme: LearnedScheme) -> dict[str, Found]:
    """What was found of each type of entity, in alphabetical order, with tags read strictly."""
    return _compare(predicted, actual, lambda tags: strict_entities(tags, scheme))


def score_repaired(predicted: Tags, actual: Tags, scheme: LearnedScheme) -> dict[str, Found]:
    """What was found of each type of entity, with broken tags repaired as `conlleval` does."""
    return _compare(predicted, actual, lambda tags: read_entities(tags, scheme)[0])


def total(found: Iterable[Found]) -> Found:
    """The sum over types: its F1 is the micro average."""
    return Found(*(sum(each) for each in zip(Found(0, 0, 0), *found, strict=True)))


def _compare(predicted: Tags, actual: Tags, read: Callable[[Sequence[str]], list[Entity]]) -> dict[str, Found]:
    right, of_predicted, of_actual = Counter[str](), Counter[str](), Counter[str]()
    for guessed, known in zip(predicted, actual, strict=True):
        entities, wanted = set(read(guessed)), set(read(known))
        right.update(each.type for each in entities & wanted)
        of_predicted.update(each.type for each in entities)
        of_actual.update(each.type for each in wanted)
    types = sorted(of_predicted | of_actual)
    return {kind: Found(right[kind], of_predicted[kind], of_actual[kind]) for kind in types}
