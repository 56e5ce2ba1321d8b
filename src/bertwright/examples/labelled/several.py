"""Several labels in one value of a file: a list, or text with separators between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

SEPARATORS = ("|", ";", ",")
"""What may stand between labels, that which labels themselves contain least often first."""
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")


def divide(value: Any, known: Callable[[str], bool]) -> list[str]:
    """The labels in a value: a list, a label, or text in which separators stand between labels; none in empty text.

    Text is divided at the separator that leaves only `known` labels, if there is one, else at the one that leaves most
    of them. A list may be written as text, as tables have it (`['good', 'new']`, `[2 27]`).
    """
    if isinstance(value, str) and known(text := value.strip()):
        return [text]
    ways = [divide_at(value, separator) for separator in SEPARATORS]
    return max(ways, key=lambda parts: sum(map(known, parts)) / len(parts) if parts else 0.0)


def divide_at(value: Any, separator: str) -> list[str]:
    """The labels in a value, with one of `SEPARATORS` between those in text that is not written as a list."""
    if isinstance(value, list | tuple):
        return [str(part) for part in value]
    text = str(value).strip()
    if text and text[0] + text[-1] == "[]":
        return _listed(text[1:-1])
    return [part for each in text.split(separator) if (part := each.strip())]


def find_separator(values: Iterable[Any]) -> str:
    """What stands between the labels of a column: one of `SEPARATORS`, or "list"; "" if a value is one label.

    A column has several labels if it has lists, or if a separator divides its values into different numbers of parts,
    and there are no more different parts than different values: names such as "Food, drink" do not combine.
    """
    found = list(values)
    if any(isinstance(value, list | tuple) for value in found):
        return "list"
    texts = {str(value).strip() for value in found} - {""}
    if texts and all(text[0] + text[-1] == "[]" for text in texts):
        return "list"
    for separator in SEPARATORS:
        parts = [divide_at(text, separator) for text in texts]
        numbers = {len(each) for each in parts}
        if len(numbers) > 1 and len({part for each in parts for part in each}) <= len(texts):
            return separator
    return ""


def _listed(text: str) -> list[str]:
    if quoted := _QUOTED.findall(text):
        return [single or double for single, double in quoted]
    return [part for part in re.split(r"[,\s]+", text) if part]
