"""Finished examples beside those of the original algorithm, drawn from one of Python's generators as it does.

The walk, truncation and masking of create_pretraining_data.py are restated in `tests/reference/pairs.py` and here.
Distributions are compared at a level of 1 % (Kolmogorov-Smirnov, chi-square); the number of predictions is exact.
"""

import random
from itertools import pairwise

import numpy as np
from tests.reference import pairs

from bertwright.core.rng import below, fold, key
from bertwright.examples.config import ExamplesConfig, MaskingConfig
from bertwright.examples.masking import Masking
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.planned import Rows, collate
from bertwright.examples.store import Documents, Store
from bertwright.examples.vocabulary import Vocabulary

LENGTH, MOST, PASSES = 128, 20, 4
VOCABULARY = Vocabulary(
    hash="", size=60_000, pad=0, unk=1, cls=2, sep=3, mask=4, unused=tuple(range(5, 20)), continues=()
)
CRITICAL = {1: 6.635, 2: 9.210}
"""Chi-square at 1 %, by degrees of freedom."""


def made(documents: int) -> Documents:
    """Documents of 1 to 20 sentences of 1 to 40 tokens; every token tells its place, modulo 50,000."""
    counts = 1 + below(key("sizes"), np.arange(documents), 20)
    lengths = 1 + below(key("lengths"), np.arange(counts.sum()), 40)
    tokens = (20 + np.arange(lengths.sum()) % 50_000).astype(np.uint16)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    return Documents(tokens, lengths.astype(np.uint16), firsts, fold(key("hashes"), np.arange(documents)))


def ours(documents: Documents) -> dict[str, np.ndarray]:
    """What our examples are like: one row for each, and one for each prediction."""
    plans = plan_passes(documents, np.ones(len(documents.hashes), bool), LENGTH, ExamplesConfig(), PASSES)
    store = Store(**vars(documents), starts=documents.token_starts(), shard_tokens=np.zeros(0), vocabulary=VOCABULARY)
    masking = Masking(MaskingConfig(random_tokens="all"), 0.15, MOST, VOCABULARY)
    found = []
    for number, plan in enumerate(plans):
        columns = {name: plan[name].astype(np.int64) for name in plan.dtype.names}
        for start in range(0, len(plan), 4096):
            part = {name: column[start : start + 4096] for name, column in columns.items()}
            part["document_breaks"] = part.pop("breaks")
            keys = fold(key("draw", number), np.arange(start, start + len(part["label"])))
            batch = collate(Rows(key=keys, **part), LENGTH, store, masking)
            found.append(described(batch, part["a_start"]))
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def described(batch: object, a_start: np.ndarray) -> dict[str, np.ndarray]:
    cu, tokens = batch.cu_seqlens.astype(int), batch.token_ids.copy()  # type: ignore[attr-defined]
    shown = tokens[batch.prediction_positions]  # type: ignore[attr-defined]
    tokens[batch.prediction_positions] = batch.labels  # type: ignore[attr-defined]
    second = np.concatenate([[0], np.cumsum(batch.segment_ids)])[cu]  # type: ignore[attr-defined]
    lengths = np.diff(cu)
    counts = np.diff(np.searchsorted(batch.prediction_positions, cu))  # type: ignore[attr-defined]
    kinds = np.where(shown == VOCABULARY.mask, 0, np.where(shown == batch.labels, 1, 2))  # type: ignore[attr-defined]
    return {
        "length": lengths,
        "a": lengths - np.diff(second) - 2,
        "b": np.diff(second) - 1,
        "front": (tokens[cu[:-1] + 1] - 20 - a_start) % 50_000,
        "label": batch.sequence_labels,  # type: ignore[attr-defined]
        "predictions": counts,
        "kind": kinds,
        "place": batch.prediction_positions - np.repeat(cu[:-1], counts),  # type: ignore[attr-defined]
    }


def theirs(documents: Documents) -> dict[str, np.ndarray]:
    bounds = documents.documents.astype(int)
    texts = [documents.sentences[a:b].astype(int).tolist() for a, b in pairwise(bounds)]
    generator, numbers = random.Random(12345), pairs.Generator(12345)
    found: dict[str, list[int]] = {
        name: [] for name in ("length", "a", "b", "front", "label", "predictions", "kind", "place")
    }
    for number in [n for n in range(len(texts)) for _ in range(PASSES)]:
        for pair in pairs.walk(texts, number, LENGTH - 3, numbers):
            whole = [list(range(sum(texts[d][slice(*r)]))) for d, r in ((number, pair.a), (pair.b_document, pair.b))]
            a, b = pairs.truncate(*whole, LENGTH - 3, lambda *_: generator.random() < 0.5)
            length = len(a) + len(b) + 3
            candidates = [p for p in range(length - 1) if p not in (0, len(a) + 1)]
            generator.shuffle(candidates)
            chosen = candidates[: min(MOST, max(1, round(length * 0.15)))]
            row = (length, len(a), len(b), a[0], int(pair.is_random), len(chosen))
            for name, value in zip(found, row, strict=False):
                found[name].append(value)
            found["place"] += chosen
            found["kind"] += [_kind(generator) for _ in chosen]
    return {name: np.array(values) for name, values in found.items()}


def _kind(generator: random.Random) -> int:
    """0: [MASK], 1: the token itself, 2: another one."""
    if generator.random() < 0.8:
        return 0
    return 1 if generator.random() < 0.5 else 2


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Kolmogorov-Smirnov: how far the distribution functions are apart, by what is allowed at 1 %."""
    points = np.union1d(a, b)
    at = [np.searchsorted(np.sort(sample), points, "right") / len(sample) for sample in (a, b)]
    return float(np.abs(at[0] - at[1]).max() / (1.628 * np.sqrt((len(a) + len(b)) / (len(a) * len(b)))))


def chi_square(a: np.ndarray, b: np.ndarray) -> float:
    """How far two samples of kinds are apart, by what is allowed at 1 %."""
    size = max(a.max(), b.max()) + 1
    table = np.stack([np.bincount(sample, minlength=size) for sample in (a, b)]).astype(float)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(((table - expected) ** 2 / expected).sum() / CRITICAL[int(size) - 1])


def test_a_hundred_thousand_examples_are_like_the_originals() -> None:
    text = made(8_000)
    mine, original = ours(text), theirs(text)
    assert min(len(mine["length"]), len(original["length"])) >= 100_000
    for side in (mine, original):
        exact = np.minimum(MOST, np.maximum(1, np.rint(side["length"] * 0.15)))
        assert (side["predictions"] == exact).all()
    for name in ("length", "a", "b", "front", "place"):
        assert distance(mine[name], original[name]) < 1, name
    for name in ("label", "kind"):
        assert chi_square(mine[name], original[name]) < 1, name
