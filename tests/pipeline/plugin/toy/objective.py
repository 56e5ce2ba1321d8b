"""The loss of masked tokens."""

from __future__ import annotations

from typing import Any

from bertwright.plugins import Term


class MaskedOnly:
    """One term over all predictions."""

    @property
    def counted(self) -> dict[str, str]:
        return {"mlm": "predictions"}

    def terms(self, model: Any, batch: Any) -> dict[str, Term]:
        logits, _ = model(batch)
        return {"mlm": Term(logits, batch.labels, batch.weights)}
