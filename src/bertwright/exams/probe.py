"""Probes: a linear classifier on frozen states, which shows what a layer knows of words (Alain and Bengio 2016).

Multinomial logistic regression on standardised features, with an L2 penalty, fitted by L-BFGS to its unique optimum: no
seed, no rate and no number of epochs to choose.

Names carry shapes: N words, H features, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn.functional import cross_entropy

from bertwright.core.config import UserPath
from bertwright.core.errors import DataError
from bertwright.core.files import naming
from bertwright.corpus.characters import compose
from bertwright.examples.problems import Problems
from bertwright.exams.exam import Exam, Score, share_of
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.tagging.files import Layout, read_sentences

PENALTY = 1.0
"""Weight of half the sum of squared weights beside the sum of the losses, as in scikit-learn with C = 1."""

_AT_ONCE = 256
"""Sentences whose words have their states in memory together."""


class Probe(Exam):
    """A linear classifier on the frozen states of each layer, such as of parts of speech."""

    kind: Literal["probe"] = "probe"
    train: UserPath
    """Tagged words to fit the classifier on, in any format that the task `tagging` reads, or sentences with one tagged
    word each: columns for the sentence, the word, its number from 0, and the tag, as in the probes of Ács et al."""
    test: UserPath
    """Tagged words to score it on."""
    word: str = ""
    """Column of the words; empty: guessed."""
    tag: str = ""
    """Column of the tags; empty: guessed."""
    most: int = Field(400, gt=0)
    """Sentences of each file that are read; of files with one tagged word a sentence five times as many."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        train, test = self._read(self.train), self._read(self.test)
        numbers = {tag: number for number, tag in enumerate(sorted({*train.tags, *test.tags}))}
        labels, right = (np.array([numbers[tag] for tag in words.tags], np.int64) for words in (train, test))
        fitted, tested = _states(encoder, train), _states(encoder, test)
        commonest, scores = float((right == np.bincount(labels).argmax()).mean()), list[Score]()
        for layer, states in enumerate(fitted):
            found = probe((states, labels), tested[layer], len(numbers)) == right
            said = "beats layer 0 by several points in the middle" if layer else "embeddings alone"
            scores.append(share_of(found, self.title, f"layer {layer}", commonest, said))
        yield from scores
        best = max(scores, key=lambda score: score.value)
        yield best._replace(name="best layer", healthy="of those above; layer 0 as good: the layers add nothing")

    def _read(self, file: Path) -> _Words:
        if (single := read_single(file, 5 * self.most)) is not None:
            return single
        _, found = read_sentences(file, Layout(self.word, self.tag), Problems())
        sentences = list(islice(found, self.most))
        words = [each.words for each in sentences]
        return _Words(words, [list(range(len(each))) for each in words], [t for each in sentences for t in each.tags])


class _Words(NamedTuple):
    """Sentences, and their tagged words."""

    sentences: list[list[str]]
    places: list[list[int]]
    """The indices of the tagged words of each sentence."""
    tags: list[str]
    """One for each tagged word."""


def read_single(file: Path, most: int) -> _Words | None:
    """The words of a file with one tagged word in each sentence; None if it is in another format.

    Raises `DataError` naming the file and the line where the word is not in its place.
    """
    words = _Words([], [], [])
    with naming(file), file.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(islice(lines, most), start=1):
            cells = compose(line).rstrip("\n").split("\t")
            if len(cells) != 4 or not cells[2].isdigit():
                if number == 1:
                    return None
                raise DataError(f"{file}:{number} has not the columns sentence, word, its number and tag. Correct it.")
            sentence, place = cells[0].split(" "), int(cells[2])
            if sentence[place : place + 1] != [cells[1]]:
                if number == 1:
                    return None
                raise DataError(f"{file}:{number}: word {place} of the sentence is not {cells[1]!r}. Correct it.")
            words.sentences.append(sentence)
            words.places.append([place])
            words.tags.append(cells[3])
    return words if words.tags else None


def _states(encoder: Encoder, words: _Words) -> NDArray[np.float32]:
    """The states [L + 1, N, H] of the tagged words."""
    parts = []
    for first in range(0, len(words.sentences), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        sentences = words.sentences[some]
        begins = np.cumsum([0, *map(len, sentences)])
        chosen = [begin + place for begin, places in zip(begins, words.places[some], strict=False) for place in places]
        parts.append(encoder.word_states(sentences)[:, chosen])
    return np.concatenate(parts, axis=1)


def probe(
    train: tuple[NDArray[np.float32], NDArray[np.int64]], test: NDArray[np.float32], classes: int
) -> NDArray[np.int64]:
    """[M] the classes that a probe gives to the features `test` [M, H], fitted on features [N, H] and classes [N]."""
    features_NH, labels_N = torch.from_numpy(train[0]).double(), torch.from_numpy(train[1])
    mean_H, deviation_H = features_NH.mean(0), features_NH.std(0, correction=0).clamp(min=1e-6)
    inputs_NH = (features_NH - mean_H) / deviation_H
    weights_HC = torch.zeros(inputs_NH.shape[1], classes, dtype=torch.float64, requires_grad=True)
    bias_C = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights_HC, bias_C], max_iter=200, tolerance_grad=1e-5, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        fit = cross_entropy(inputs_NH @ weights_HC + bias_C, labels_N, reduction="sum")
        total = (fit + PENALTY / 2 * weights_HC.square().sum()) / len(labels_N)
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        logits = (torch.from_numpy(test).double() - mean_H) / deviation_H @ weights_HC + bias_C
    found: NDArray[np.int64] = logits.argmax(1).numpy()
    return found
