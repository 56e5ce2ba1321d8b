"""Random examples of the usual form, and a vocabulary for them."""

from pathlib import Path

import numpy as np

from bertwright.examples.instances import Instances, ends
from bertwright.formats.format import TokenDocuments

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
VOCABULARY = [*SPECIALS, *(f"{'##' if i % 3 == 0 else ''}w{i}" for i in range(5, 500))]


def token_documents(documents: list[list[list[int]]]) -> TokenDocuments:
    """Documents of sentences of ids."""
    sentences = [sentence for document in documents for sentence in document]
    flat = [number for sentence in sentences for number in sentence]
    arrays = flat, [len(sentence) for sentence in sentences], [len(document) for document in documents]
    return TokenDocuments(*(np.array(values, np.int64) for values in arrays))


def sample(number: int, length: int = 32, predictions: int = 5, seed: int = 1, masks: bool = True) -> Instances:
    """Pairs [CLS] A [SEP] B [SEP] of random words, 15 % of them masked as in the original builder."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 3, length + 1, number)
    cu = ends(lengths)
    second = rng.integers(3, lengths - 1)
    tokens = rng.integers(5, len(VOCABULARY), cu[-1])
    tokens[cu[:-1]] = CLS
    tokens[cu[1:] - 1] = tokens[cu[:-1] + second - 1] = SEP
    positions, labels, counts = [], [], []
    for row in range(number if masks else 0):
        candidates = [i for i in range(1, lengths[row] - 1) if i != second[row] - 1]
        count = min(predictions, max(1, round(lengths[row] * 0.15)))
        chosen = np.sort(rng.choice(candidates, count, replace=False))
        labels.append(tokens[cu[row] + chosen])
        draw = rng.random(count)
        shown = np.where(draw < 0.8, MASK, np.where(draw < 0.9, labels[-1], rng.integers(5, len(VOCABULARY), count)))
        tokens[cu[row] + chosen] = shown
        positions.append(chosen)
        counts.append(count)
    none = np.zeros(0, np.int32)
    return Instances(
        tokens.astype(np.int32),
        cu,
        second.astype(np.int32),
        np.concatenate([none, *positions]).astype(np.int32),
        np.concatenate([none, *labels]).astype(np.int32),
        ends(counts if masks else np.zeros(number, np.int64)),
        rng.integers(0, 2, number).astype(np.int8),
    )


def same(one: Instances, other: Instances) -> bool:
    """Whether the examples are equal, types included."""
    return all(
        a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )


def everything_of(folder: Path) -> dict[str, bytes]:
    """All files in a folder by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
