"""The masking settings, `masking` of a training phase: which tokens are predicted, and what replaces them."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bertwright.core.config import Section

MOST_RATES = 4
"""Maximum number of mask rates per phase: compiled code has a separate shape for each."""
Rate = Annotated[float, Field(gt=0, lt=1)]


def _from_step_0(rates: float | tuple[tuple[int, float], ...]) -> float | tuple[tuple[int, float], ...]:
    if isinstance(rates, float):
        return rates
    steps = [step for step, _ in rates]
    if not rates or steps[0] != 0 or any(a >= b for a, b in pairwise(steps)) or len(rates) > MOST_RATES:
        raise ValueError(f"{rates} must be 1 to {MOST_RATES} pairs [step, rate] from step 0 on, such as [[0, 0.3]]")
    return rates


class MaskingConfig(Section):
    """Which tokens are predicted and what replaces them (Devlin et al. 2019 §3.1)."""

    rate: Annotated[Rate | tuple[tuple[int, Rate], ...], AfterValidator(_from_step_0)] = 0.15
    """Share of the tokens (special ones counted, as in the originals) that are predicted, or up to four pairs
    [step, share]: from that step of the phase on."""

    max_predictions: int = Field(0, ge=0)
    """Maximum number of predicted tokens per sequence; 0: length x rate x 25/24 (the originals' 20 at 128, 80 at 512),
    or with `bernoulli` no limit."""

    count: Literal["exact", "bernoulli"] = "exact"
    """How many tokens are predicted: `exact`, a fixed number for each length, or `bernoulli`, a separate random draw
    for every token (or word)."""

    unit: Literal["tokens", "words", "spans"] = "tokens"
    """What is masked together: single tokens, all pieces of a word, or several consecutive words (ALBERT's n-grams)."""

    longest_span: int = Field(3, ge=1, le=32)
    """Maximum length of a span (words); a length of n words is drawn with a probability proportional to 1/n."""

    mask_share: float = Field(0.8, ge=0, le=1)
    """Share of the predicted tokens that are replaced by [MASK]."""

    random_share: float = Field(0.1, ge=0, le=1)
    """Share of the predicted tokens that are replaced by a random entry; the remaining ones stay unchanged."""

    random_tokens: Literal["words", "all"] = "words"
    """The entries that random replacements are drawn from: `words`, all except special and unused entries, or `all`, as
    in the originals."""

    static: bool = False
    """Whether masks are drawn only once for each pass of the plans, as in the originals' files, instead of again in
    every epoch."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.mask_share + self.random_share > 1:
            raise ValueError(f"mask_share {self.mask_share} and random_share {self.random_share} exceed 1 together")
        # A span is drawn as a unit, so its words have no separate draws.
        if self.unit == "spans" and self.count == "bernoulli":
            raise ValueError('count = "bernoulli" has no effect for spans: use unit = "tokens" or "words"')
        # A setting without effect is rejected, not ignored.
        if self.unit != "spans" and self.longest_span != type(self).model_fields["longest_span"].default:
            raise ValueError(
                f'longest_span {self.longest_span} has an effect only with unit = "spans", not "{self.unit}": set that '
                "unit, or leave longest_span out"
            )
        return self

    def rate_at(self, step: int) -> float:
        """The mask rate at a step of the phase."""
        return next(rate for start, rate in reversed(self.rates) if start <= step)

    @property
    def rates(self) -> tuple[tuple[int, float], ...]:
        """The mask rates, each with the step of the phase from which it applies."""
        return ((0, self.rate),) if isinstance(self.rate, float) else self.rate

    @property
    def changes(self) -> list[int]:
        """The steps of the phase at which the rate changes."""
        return [step for step, _ in self.rates[1:]]

    def most(self, length: int) -> int:
        """The maximum number of predicted tokens in a sequence of this length, at any step."""
        if self.max_predictions or self.count == "bernoulli":
            return min(self.max_predictions or length, length)
        highest = max(rate for _, rate in self.rates)
        # 20 at 128 and 80 at 512, as in the originals; the rate alone would give 19 and 77.
        return min(max(1, round(length * highest * 25 / 24)), length)
