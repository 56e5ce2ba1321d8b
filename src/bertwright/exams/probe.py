"""Probes: a linear classifier on frozen states, which shows what a layer knows of words (Alain and Bengio 2016).

Multinomial logistic regression on standardised features, with an L2 penalty, fitted by L-BFGS to its unique optimum: no
seed, no rate and no number of epochs to choose.

Names carry shapes: N words, H features, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn.functional import cross_entropy

from bertwright.core.config import UserPath
from bertwright.examples.problems import Problems
from bertwright.exams.exam import Exam, Score
from bertwright.exams.interval import interval_of_mean
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.tagging.files import Layout, read_sentences

PENALTY = 1.0
"""Weight of half the sum of squared weights beside the sum of the losses, as in scikit-learn with C = 1."""


class Probe(Exam):
    """A linear classifier on the frozen states of each layer, such as of parts of speech."""

    kind: Literal["probe"] = "probe"
    train: UserPath
    """Tagged words to fit the classifier on, in any format that the task `tagging` reads."""
    test: UserPath
    """Tagged words to score it on."""
    word: str = ""
    """Column of the words; empty: guessed."""
    tag: str = ""
    """Column of the tags; empty: guessed."""
    most: int = Field(400, gt=0)
    """Sentences of each file that are read."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        (train, trained), (test, wanted) = self._read(self.train), self._read(self.test)
        numbers = {tag: number for number, tag in enumerate(sorted({*trained, *wanted}))}
        labels, right = (np.array([numbers[tag] for tag in tags], np.int64) for tags in (trained, wanted))
        fitted, tested = encoder.word_states(train), encoder.word_states(test)
        commonest = float((right == np.bincount(labels).argmax()).mean())
        for layer, states in enumerate(fitted):
            found = probe((states, labels), tested[layer], len(numbers)) == right
            value, low, high = interval_of_mean(found.astype(np.float64))
            said = "beats layer 0 by several points in the middle" if layer else "embeddings alone"
            yield Score(self.title, f"layer {layer}", value, (low, high), commonest, said)

    def _read(self, file: Path) -> tuple[list[list[str]], list[str]]:
        _, found = read_sentences(file, Layout(self.word, self.tag), Problems())
        sentences = list(islice(found, self.most))
        return [each.words for each in sentences], [tag for each in sentences for tag in each.tags]


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
