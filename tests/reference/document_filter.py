"""The TurkuNLP document filter restated character by character, as slowly and plainly as it reads.

Source: spyysalo/wiki-bert-pipeline, scripts/filterdocs.py and config/filter.sh: the order of the tests, their
thresholds and what each of them counts. The language test is left to the caller.
"""

from __future__ import annotations

import re
import string

HUNGARIAN = "abcdefghijklmnopqrstuvwxyzáéíóúöüőű"


def first_failure(sentences: list[str], letters: str) -> str | None:
    """The name of the first test the document fails, else None."""
    capitals = "".join(c.upper() for c in letters)
    word = re.compile(rf"\b[{capitals}]?[{letters}]{{2,}}\b")
    words = sum(len(word.findall(s)) for s in sentences)
    tokens = sum(len(s.split()) for s in sentences)
    characters = [c for s in sentences for c in s]

    def share(condition) -> float:
        return sum(1 for c in characters if condition(c)) / len(characters)

    if words / len(sentences) < 4:
        return "mean_words"
    if len(sentences) < 3:
        return "min_sentences"
    if len(sentences) > 1000:
        return "max_sentences"
    if tokens < 20:
        return "min_tokens"
    if tokens > 10_000:
        return "max_tokens"
    if sum(1 for s in sentences if not word.findall(s)) / len(sentences) > 0.2:
        return "wordless"
    if share(lambda c: c in string.punctuation) > 0.075:
        return "punctuation"
    if share(str.isupper) > 0.1:
        return "upper"
    if share(str.isdigit) > 0.075:
        return "digits"
    if share(lambda c: c.isalpha() and c not in letters and c not in capitals) > 0.02:
        return "foreign"
    if words < 30:
        return "min_words"
    return None
