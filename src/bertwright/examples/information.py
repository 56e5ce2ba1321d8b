"""Sentences about examples that teach a network nothing, or little, whichever stage or command counts them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.examples.config import PAIRS, ExamplesConfig
from bertwright.vocab.config import MOST_UNKNOWN

TELLING = 16
"""Number of examples, or of predictions, from which it is not a coincidence that all are alike."""
FEW_TEXTS = 50
"""Number of held-out texts below which the scores of a classifier decide nothing: with 50 an accuracy has a standard
error of up to 7 points."""

ERRORS = 4
"""Standard errors above which a difference of shares is no chance: of a thousand labels, one in sixteen data sets has
such a difference by chance."""
DIFFERENCE = 0.03
"""The smallest difference of shares that is worth a warning."""
_NAMED = 5
"""Labels that a sentence names."""


def one_label(labelled: int, ones: float) -> list[str]:
    """Return a sentence if all of `labelled` pairs have the same label, given how many have 1; else none."""
    if labelled < TELLING or 0 < ones < labelled:
        return []
    return [f"all {labelled:,} labels of pairs are {int(ones > 0)}, so there is nothing to learn from them"]


def unknown_words(unknown: int, tokens: int) -> list[str]:
    """Return a sentence if more than `MOST_UNKNOWN` of `tokens` tokens are [UNK], else none."""
    if unknown <= MOST_UNKNOWN * tokens:
        return []
    share = f"{unknown / tokens:.1%} of the tokens are [UNK] (at most {MOST_UNKNOWN:.0%} is sensible)"
    return [f"{share}, so the vocabulary does not fit the text"]


def absent_classes(counts: Sequence[int], labels: Sequence[str]) -> list[str]:
    """Return a sentence that names the classes, of `labels`, without a training text, given the `counts` of each."""
    absent = [label for label, count in zip(labels, counts, strict=True) if not count]
    if not absent:
        return []
    which = f"one of the labels {', '.join(absent)}, so they" if len(absent) > 1 else f"the label {absent[0]}, so it"
    return [f"no training text has {which} cannot be learned"]


def different_shares(
    counts: tuple[Sequence[int], Sequence[int]], totals: tuple[int, int], labels: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence on the labels whose shares in the training and the held-out examples differ by more than chance,
    given the `counts` of each and the numbers of examples: by more than `ERRORS` standard errors of the difference, and
    by `DIFFERENCE` or more. None if there are fewer than `FEW_TEXTS` of either."""
    trained, heldout = totals
    if min(totals) < FEW_TEXTS:
        return
    found = []
    for label, of_train, of_heldout in zip(labels, *counts, strict=True):
        shares = of_train / trained, of_heldout / heldout
        both = (of_train + of_heldout) / (trained + heldout)
        error = math.sqrt(both * (1 - both) * (1 / trained + 1 / heldout))
        difference = abs(shares[0] - shares[1])
        if difference >= DIFFERENCE and difference > ERRORS * error:
            found.append((difference, label, shares))
    if found:
        most = sorted(found, key=lambda each: -each[0])[:_NAMED]
        listed = "; ".join(f"{label} {share:.1%} and {other:.1%}" for _, label, (share, other) in most)
        more = f", and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        yield (
            "the shares of labels in the training and the held-out data differ by more than chance (over "
            f"{ERRORS} standard errors): {listed}{more}; scores are those of data unlike the training data"
        )


def of_plans(
    sequences: Mapping[str, Any], rows: Mapping[str, Sequence[int]], config: ExamplesConfig
) -> Iterator[tuple[str, str]]:
    """Yield for each set of plans whose pairs all have one label, or none, what is wrong and what to do, from the
    counts of the stage."""
    if config.plan not in PAIRS:
        return
    for name, counted in sequences.items():
        number, share = sum(rows.get(name, ())), counted["label_share"]
        if share is None and number:
            fault = "no example is a pair with a label, so only masked words are learned from"
            yield f"length {name}: {fault}.", "Give longer documents, or set examples.plan=full-sentences."
        elif share is not None and (faults := one_label(number, share * number)):
            cause, remedy = _CAUSE[config.plan, share > 0]
            yield f"length {name}: {faults[0]}{cause}.", remedy


_CAUSE = {
    ("next-sentence", True): (
        "; documents of one sentence have no next sentence",
        "Give longer documents, or set examples.plan=full-sentences.",
    ),
    ("next-sentence", False): (
        "; random sentences need other documents",
        "Give more documents, or set examples.plan=sentence-order.",
    ),
    ("sentence-order", True): ("", "Set another examples.seed, or give more text."),
    ("sentence-order", False): ("", "Set another examples.seed, or give more text."),
}
"""Why all labels of a plan are 1 (or else 0), if that is known, and what to do."""
