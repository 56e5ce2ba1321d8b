"""Compares the answers of a runtime with those of the reference.

Names carry shapes: N texts, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.export.certify.shapes import Difference, Example, Row
from bertwright.export.runtimes.runtime import Head, Published, Runtime

Floats = NDArray[np.float32]
_EXAMPLES, _TOKENS, _SHOWN = 3, 8, 120


def differing_ids(expected: Sequence[Sequence[int]], given: Sequence[Sequence[int]]) -> list[int]:
    """The numbers of the texts whose ids differ."""
    return [number for number, (a, b) in enumerate(zip(expected, given, strict=True)) if list(a) != list(b)]


@dataclass(frozen=True)
class Texts:
    """The texts of a certificate, and what their ids should be."""

    model: Published
    lines: Sequence[str]
    ids: Sequence[Sequence[int]]
    entries: Sequence[str]
    """The vocabulary, by id."""


def compare_ids(row: Row, runtime: Runtime, texts: Texts, given: Sequence[Sequence[int]]) -> Row:
    """The row of a runtime that gives these ids, with how many texts have others, why, and the shortest of them: those
    that no known fault of its tokenizer explains, if there are any."""
    differing = differing_ids(texts.ids, given)
    row = {**row, "lines": len(texts.lines), "other_ids": len(differing)}
    if not differing:
        return row
    reasons = {number: runtime.explain(texts.model, texts.lines[number]) for number in differing}
    unknown = [number for number in differing if not reasons[number]]
    why = f"{len(differing):,} of {len(texts.lines):,} lines get other ids"
    if len(unknown) < len(differing):
        why += f", {len(unknown):,} of them for no known reason" if unknown else ", all for known reasons"
    shortest = sorted(unknown or differing, key=lambda number: len(texts.lines[number]))[:_EXAMPLES]
    examples = [_example(texts, number, given[number], reasons[number]) for number in shortest]
    return {**row, "status": "differs" if unknown else "known", "why": why, "examples": examples}


def _example(texts: Texts, number: int, given: Sequence[int], reason: str) -> Example:
    text, expected = texts.lines[number], texts.ids[number]
    alike = zip(expected, given, strict=False)
    first = next((i for i, (a, b) in enumerate(alike) if a != b), min(len(expected), len(given)))
    here, there = ([_token(i, texts.entries) for i in ids[first : first + _TOKENS]] for ids in (expected, given))
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return {"text": shown, "expected": here, "given": there, "reason": reason}


def _token(number: int, entries: Sequence[str]) -> str:
    return entries[number] if 0 <= number < len(entries) else f"id {number}"


def difference(expected: Sequence[Floats], given: Sequence[Floats]) -> Difference:
    """The difference of two outputs over N texts, each of any shape; `DataError` if shapes differ."""
    for a, b in zip(expected, given, strict=True):
        if a.shape != b.shape:
            raise DataError(f"an output of shape {list(b.shape)}, where the reference has {list(a.shape)}")
    # Rounding grows with the numbers.
    scale = max(1.0, *(float(np.abs(a).max(initial=0)) for a in expected))
    apart = [np.abs(a.astype(np.float64) - b) for a, b in zip(expected, given, strict=True)]
    return {
        "largest": max(float(each.max(initial=0)) for each in apart) / scale,
        "mean": sum(float(each.sum()) for each in apart) / max(1, sum(each.size for each in apart)) / scale,
        "cosine": _mean_cosine(expected, given),
    }


def _mean_cosine(expected: Sequence[Floats], given: Sequence[Floats]) -> float:
    if all(each.size == 1 for each in expected):  # of two numbers it would be their signs: all lines are one vector
        return _cosine(
            np.concatenate([each.ravel() for each in expected]), np.concatenate([each.ravel() for each in given])
        )
    return float(np.mean([_cosine(a, b) for a, b in zip(expected, given, strict=True)]))


def _cosine(a: Floats, b: Floats) -> float:
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / lengths if lengths else float(np.array_equal(x, y))


def same_first(head: Head, expected: Mapping[str, Sequence[Floats]], given: Mapping[str, Sequence[Floats]]) -> Any:
    """The share of answers that are the reference's: the best word, class or end; the sign of a score of its own;
    without logits, the line with the nearest vector. None if there is nothing to choose between."""
    if "logits" in given and "logits" in expected:
        # A choice has one logit for each text: the better of two texts is asked for.
        pairs = list(zip(expected["logits"], given["logits"], strict=True))
        if head == "choice":
            return _same_order(np.array([a.item() for a, _ in pairs]), np.array([b.item() for _, b in pairs]))
        if pairs[0][0].shape[-1] == 1:
            return None
        axis = 0 if head == "span" else -1
        return float(np.mean(np.concatenate([np.ravel(a.argmax(axis) == b.argmax(axis)) for a, b in pairs])))
    here, there = vectors(expected), vectors(given)
    if here is None or there is None or len(here) < 3:
        return None
    return float(np.mean(_nearest(here) == _nearest(there)))


def _same_order(expected_N: NDArray[Any], given_N: NDArray[Any]) -> float:
    other = np.roll(np.arange(len(expected_N)), 1)
    return float(np.mean((expected_N > expected_N[other]) == (given_N > given_N[other])))


def vectors(outputs: Mapping[str, Sequence[Floats]]) -> Floats | None:
    """The vectors [N, H] of the texts; None if the runtime gives neither these nor hidden states."""
    for name in ("own", "vector"):
        if name in outputs:
            return np.stack([np.asarray(vector, np.float32) for vector in outputs[name]])
    if "hidden" in outputs:
        return np.stack([hidden.mean(0) for hidden in outputs["hidden"]])
    return None


def _nearest(vectors_NH: Floats) -> NDArray[np.int64]:
    unit = vectors_NH / np.maximum(np.linalg.norm(vectors_NH, axis=1, keepdims=True), 1e-12)
    cosines_NN = unit @ unit.T
    np.fill_diagonal(cosines_NN, -2)
    nearest: NDArray[np.int64] = cosines_NN.argmax(1)
    return nearest
