"""The losses of each kind of text before and after training, as lines and as a table; see `forgetting`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bertwright.page.markup import Element, p, plain_table


def before_and_after(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line with the loss of each text, and why there is none before training, if they were taken."""
    if rows := scores.get("by_text"):
        losses = ", ".join(f"{row['text']} {_change_of(row)}" for row in rows)
        yield f"loss by text: {losses}"
    if why := scores.get("no_before"):
        yield f"no losses before training: {why}"


def table_by_text(scores: Mapping[str, Any]) -> Iterator[Element]:
    """Yield the table of the report and the card, and what it shows; nothing if the losses were not taken."""
    rows = scores.get("by_text", ())
    if not rows:
        return
    if any(row["before"] is not None for row in rows):
        yield p(
            "The loss of each kind of text by itself, in nats, of the network that training started from and of the "
            "trained one, on the same masked tokens. A text whose loss rises is being forgotten."
        )
    else:
        yield p("The loss of each kind of text by itself, in nats.")
    cells = [(row["text"], f"{row['documents']:,}", f"{row['predictions']:,}", *_moved(row)) for row in rows]
    yield plain_table(cells, ("text", "documents", "masked tokens", "before", "after", "change"))
    if why := scores.get("no_before"):
        yield p(f"There is no loss before training: {why}.")


def _moved(row: Mapping[str, Any]) -> tuple[str, str, str]:
    before, after = ("–" if row[name] is None else f"{row[name]:.3f}" for name in ("before", "loss"))
    return before, after, _percent(row) or "–"


def _change_of(row: Mapping[str, Any]) -> str:
    """Such as "2.80 -> 2.85 nats (+1.8 %)", or only the loss after training if that is all that is known."""
    if row["loss"] is None:
        return "NaN"
    change = _percent(row)
    return f"{row['before']:.2f} -> {row['loss']:.2f} nats ({change})" if change else f"{row['loss']:.2f} nats"


def _percent(row: Mapping[str, Any]) -> str:
    after, before = row["loss"], row["before"]
    return f"{100 * (after / before - 1):+.1f} %" if after is not None and before else ""
