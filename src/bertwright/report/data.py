"""The data sections: the vocabulary and the examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.core.numbers import pluralize
from bertwright.page.markup import Content, Element, p
from bertwright.page.table import definitions, number, percent, table
from bertwright.report.facts import Facts

COLUMNS = ("documents", "sentences", "tokens")


def vocabulary(facts: Facts) -> Content:
    """How well the vocabulary fits the text."""
    counts = facts.counts("vocab")
    # Without a corpus there was no text to measure the vocabulary on, so it is measured on the examples.
    if "corpus" not in facts.stages:
        return _given(counts, facts.counts("examples")["text"])
    case, accents = _letters(counts)
    rows = [
        ("entries", number(counts["entries"])),
        ("tokens per word", number(counts["fertility"])),
        ("unknown words", f"{counts['unknown_rate'] * 100:.3f}\u00a0%"),
        ("characters in unknown words", f"{counts['unknown_character_rate'] * 100:.3f}\u00a0%"),
        ("characters that are entries", _alphabet(counts["alphabet"])),
        ("tokens of one character", percent(counts["single_character_rate"])),
        ("entries not met in the sample", percent(counts["unused_rate"])),
        ("case", case),
        ("accents", accents),
    ]
    measured = " there" if counts["trained_on"] else " from the beginning of every shard"
    about = (
        f"{_origin(counts['trained_on'])} The figures are of {counts['sample_words']:,} words{measured}, split "
        "as BERT splits text before the vocabulary is applied: at spaces and punctuation, and around each Chinese "
        "character. A run of Thai or kana letters is one such word."
    )
    return p(about), definitions(rows), _scripts(counts["scripts"])


def _given(counts: Mapping[str, Any], text: Mapping[str, Any]) -> Content:
    """A vocabulary given as a file, measured on the examples made with it."""
    case, accents = _letters(counts)
    rows = [
        ("entries", number(counts["entries"])),
        ("tokens per word", number(text["fertility"])),
        ("unknown words", f"{text['unknown_rate'] * 100:.3f}\u00a0%"),
        ("case", case),
        ("accents", accents),
    ]
    words = f"The figures are of the {text['words']:,} words and marks of the training examples."
    return p(f"{_origin({})} {words}"), definitions(rows)


def _letters(counts: Mapping[str, Any]) -> tuple[str, str]:
    """How the vocabulary treats case and accents."""
    case = "kept" if not counts["lower_case"] else "lower-cased"
    return case, "kept" if not counts["strip_accents"] else "removed"


def _alphabet(alphabet: Mapping[str, Any]) -> str:
    """How many of the text's distinct characters are entries, their share of the text, and the commonest others."""
    kept = f"{alphabet['characters']:,} of {alphabet['of']:,}, {alphabet['coverage'] * 100:.3f}\u00a0% of the text"
    return kept + (f"; not {' '.join(alphabet['missing'])}" if alphabet["missing"] else "")


def _origin(trained: Mapping[str, Any]) -> str:
    if not trained:
        return "WordPiece, from a given file."
    part = "all" if trained["share"] == 1 else percent(trained["share"])
    return f"WordPiece, learned from {pluralize(trained['documents'], 'document')}, {part} of the corpus."


def _scripts(scripts: Mapping[str, Mapping[str, Any]]) -> Element:
    rows = [
        (
            name,
            number(row["words"]),
            number(row["fertility"]),
            f"{row['unknown_rate'] * 100:.3f}\u00a0%",
            percent(row["single_character_rate"]),
            number(row["entries"]),
            number(row["unused"]),
        )
        for name, row in scripts.items()
    ]
    head = ("script", "words", "tokens per word", "unknown", "tokens of one character", "entries", "not met")
    return table(head, rows)
