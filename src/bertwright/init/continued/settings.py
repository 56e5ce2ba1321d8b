"""The settings of a continued training, from how much text there is, its documents, and the size of the network.

What is known is mostly of one size of network (base) and of English: Gururangan et al. 2020 ("Don't stop pretraining",
§3.1 and appendix B: domain-adaptive training of RoBERTa, 2,048 sequences of 512 tokens, 5e-4; task-adaptive, 256
sequences, 1e-4; both with 6 % warm-up and a linear decay), Gupta et al. 2023 (the rate must be warmed up again; how
long matters little; a higher peak learns more and forgets more), Ibrahim et al. 2024 (re-warm, re-decay, and 5 % of the
old text: nearly no forgetting at the loss of nearly nothing), Muennighoff et al. 2023 (up to four readings, repeated
text is worth nearly as much as new text). Rates for other sizes follow those of the recipes drafted from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertwright.check.recipe.advice import WORTHWHILE

LENGTHS = (128, 256, 512)
"""Sequence lengths that are chosen from."""
SHARE = 0.05
"""Share of general text (Ibrahim et al. 2024 §6.1)."""
WARMUP = 0.06
_EPOCHS = ((1e9, 1), (1e8, 2), (1e7, 3))
"""Tokens of text from which on it is read so often; smaller texts as often as is still worth it."""
_MOST_EPOCHS = 10
"""Readings of a text so small that it would otherwise give too few updates."""
_FEW_UPDATES = 200
_UPDATES = 5_000
"""Updates that are left when the batch grows."""
_LEAST_BATCH, _BATCH, _MOST_BATCH = 1 << 10, 1 << 12, 1 << 20
"""Tokens per update: for a tiny text, usually at least, and at most (2,048 sequences of 512)."""
_RATES = ((1 << 19, 5e-4), (1 << 15, 1e-4), (0, 5e-5))
"""Tokens per update from which on a base network has this rate."""
_BASE_WIDTH = 768
OWN_SHARE = 0.5
"""Share of the peak rate of the training that a network of this project comes from."""


@dataclass(frozen=True)
class Known:
    """What the settings follow from."""

    tokens: float
    """Tokens of the own text."""
    documents: int
    typical: int
    """Tokens of the document in which the median token is."""
    width: int
    """Hidden size of the network."""
    positions: int
    ranks: int = 1
    peak: float | None = None
    """Peak rate of the last phase of the training that the network comes from, if it is of this project."""


@dataclass(frozen=True)
class Settings:
    """What follows."""

    length: int
    epochs: int
    batch: int
    """Sequences per update."""
    rate: float
    heldout: float
    updates: int
    """Updates of the whole training, about."""


def settings_for(known: Known, share: float = 0.0) -> Settings:
    """The settings for a text to which general text is added so that it is `share` of all."""
    heldout = heldout_share(known)
    length = length_for(known)
    whole = known.tokens * (1 - heldout) / (1 - share)
    epochs = next((epochs for least, epochs in _EPOCHS if known.tokens >= least), WORTHWHILE)
    batch = _BATCH
    while batch < _MOST_BATCH and whole * epochs / (2 * batch) >= _UPDATES:
        batch *= 2
    while batch > _LEAST_BATCH and whole * epochs / batch < _FEW_UPDATES:
        batch //= 2
    if whole * epochs / batch < _FEW_UPDATES:
        epochs = min(_MOST_EPOCHS, max(epochs, round(_FEW_UPDATES * batch / whole)))
    sequences = max(1, batch // length)
    sequences = -(-sequences // known.ranks) * known.ranks  # each rank has the same number
    updates = max(1, round(whole * epochs / (sequences * length)))
    return Settings(length, epochs, sequences, rate_for(known, batch), heldout, updates)


def length_for(known: Known) -> int:
    """The shortest of `LENGTHS` that holds the typical document, of those that the network reads."""
    possible = [length for length in LENGTHS if length <= known.positions] or [known.positions]
    return next((length for length in possible if length >= known.typical), possible[-1])


def heldout_share(known: Known) -> float:
    """The share of the documents that is held out: enough for two digits of the loss, and at least some documents."""
    share = next((share for least, share in ((4e7, 0.005), (4e6, 0.01), (4e5, 0.05)) if known.tokens >= least), 0.1)
    return min(0.2, max(share, round(20 / known.documents, 2))) if known.documents else share


def rate_for(known: Known, batch: int) -> float:
    """The peak learning rate for `batch` tokens per update, to one digit."""
    if known.peak is not None:
        return _one_digit(OWN_SHARE * known.peak)
    base = next(rate for least, rate in _RATES if batch >= least)
    return _one_digit(min(base * _BASE_WIDTH / known.width, 5e-4) if known.width != _BASE_WIDTH else base)


def general_weight(own: float, general: float) -> tuple[float, float]:
    """The weight of the general text that makes it `SHARE` of all, given the bytes of both, and the share that it then
    has: less if there is not enough of it."""
    weight = min(1.0, SHARE / (1 - SHARE) * own / max(general, 1.0))
    used = weight * general
    return float(f"{weight:.2g}"), used / (used + own)


def _one_digit(rate: float) -> float:
    return float(f"{rate:.0e}")
