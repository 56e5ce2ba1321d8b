"""Measures how well a vocabulary fits a text, in total and by script."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.config import LONGEST_WORD, VocabConfig
from bertwright.vocab.entries import CONTINUATION, UNK
from bertwright.vocab.matcher import Matcher
from bertwright.vocab.trainers import count_characters

SHOWN_SHARE = 1e-4
_SHOWN_CHARACTERS = 10
MOST_UNKNOWN = 1e-3
"""Share of unknown words above which a warning is logged."""


MOST_PIECES = 3.0
"""Tokens per word above which a given vocabulary was made for another language, or another kind of text."""
WORDS_AN_ENTRY = 20
"""Words of text per entry from which entries that never occur are those of another language."""


def measure(entries: list[str], words: Mapping[str, int], longest_word: int = LONGEST_WORD) -> dict[str, Any]:
    """Fertility, unknown words and related statistics of a text, from its word counts (see `split.count_words`).

    Words are BERT's: separated by spaces and punctuation, with each Chinese character a word; the corpus stage counts
    words differently. `fertility` is tokens per word, `unknown_rate` the share of words that become [UNK],
    `single_character_rate` the share of tokens that are one character, and `unused_rate` the share of entries that the
    text never uses. `unknown_character_rate` is the share of characters in unknown words, `too_long` the number of
    unknown words of more characters than `longest_word`, and `alphabet` describes the characters that are entries.
    `scripts` has statistics by script, commonest first; the script of a word or entry is that of its first letter.
    """
    occurrences = np.fromiter(words.values(), np.int64, len(words))
    tokens, unknown, single, used = _tokenised(entries, list(words), occurrences, longest_word)
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    columns = np.stack([occurrences, occurrences * tokens, occurrences * unknown, occurrences * single])
    return {
        "entries": len(entries),
        "sample_words": int(occurrences.sum()),
        "sample_tokens": int(columns[1].sum()),
        **_rates(columns.sum(1), used),
        "unknown_character_rate": round(int((sizes * columns[2]).sum()) / max(1, int((sizes * occurrences).sum())), 6),
        "too_long": int(columns[2][sizes > longest_word].sum()),
        "alphabet": _alphabet(entries, words),
        "scripts": _by_script(entries, list(words), columns, used),
    }


def shortcomings(report: Mapping[str, Any], config: VocabConfig) -> str:
    """A warning for a vocabulary, trained or given, with more than `MOST_UNKNOWN` unknown words, or for a given one
    that the text hardly uses; else ""."""
    if report["unknown_rate"] <= MOST_UNKNOWN:
        return _hardly_used(report) if config.file is not None else ""
    alphabet, unknown = report["alphabet"], report["sample_words"] * report["unknown_rate"]
    warning = (
        f"warning: {report['unknown_rate']:.2%} of the words, with {report['unknown_character_rate']:.2%} of the "
        f"characters, are unknown ([UNK])"
    )
    if report["too_long"]:
        share = min(1.0, report["too_long"] / unknown)
        warning += f"; {share:.0%} of these words have more than {config.longest_word:,} characters without a space"
    if alphabet["missing"]:
        warning += (
            f"; {1 - alphabet['coverage']:.3%} of the characters are not in the vocabulary, such as "
            f"{' '.join(alphabet['missing'])}"
        )
    return " ".join([f"{warning}.", *_remedy(config, bool(alphabet["missing"]))])


def _hardly_used(report: Mapping[str, Any]) -> str:
    fertility, unused = report["fertility"], report["unused_rate"]
    # A network to continue keeps its vocabulary, whatever its new text.
    remedy = "Leave vocab.file out to train one on this text, unless training starts from a network that has this one."
    if fertility > MOST_PIECES:
        single = f"{report['single_character_rate']:.0%} of the tokens are one character"
        return f"warning: {fertility:.1f} tokens per word (1.1 to 2 are usual), {single}. {remedy}"
    # In less text, most entries of a fitting vocabulary do not occur either.
    if unused > 0.5 and report["sample_words"] > WORDS_AN_ENTRY * report["entries"]:
        words = f"{report['sample_words']:,} words"
        return f"warning: {unused:.0%} of the entries occur nowhere in {words}, so training cannot see them. {remedy}"
    return ""


def _remedy(config: VocabConfig, characters: bool) -> Iterator[str]:
    """Yield the advice for a vocabulary with unknown words, if any helps; `characters`: some have no entry."""
    if config.file is not None:
        yield "Take a vocab.file made for such text, or leave it out to train one."
    # Coverage cannot help if every character has an entry.
    elif characters and config.only_learned:
        yield "Set vocab.trainer.add_characters=true, or raise vocab.trainer.character_coverage."
    elif characters:
        yield "Raise vocab.alphabet_coverage."


def _alphabet(entries: list[str], words: Mapping[str, int]) -> dict[str, Any]:
    """Counts of the text's characters that are entries, their share of all occurrences, and the commonest others."""
    alone = {entry.removeprefix(CONTINUATION) for entry in entries}
    characters, counts = count_characters(words)
    known = np.array([character in alone for character in characters], bool)
    missing = [character for character, is_entry in zip(characters, known, strict=True) if not is_entry]
    return {
        "characters": int(known.sum()),
        "of": len(characters),
        "coverage": round(int(counts[known].sum()) / max(1, int(counts.sum())), 6),
        "missing": missing[:_SHOWN_CHARACTERS],
    }


def usage(entries: list[str], words: Mapping[str, int], longest_word: int = LONGEST_WORD) -> Counter[str]:
    """How often each entry occurs in the tokenised words; entries that never occur are omitted."""
    *_, used = _tokenised(entries, list(words), np.fromiter(words.values(), np.int64, len(words)), longest_word)
    return Counter({entries[i]: int(used[i]) for i in np.flatnonzero(used)})


def script(word: str) -> str:
    """The script of the first letter by Unicode name, such as "Latin"; without letters "digits" or "other marks"."""
    # Fast path: nearly all words begin with a letter.
    letter = word[0] if word[:1].isalpha() else next(filter(str.isalpha, word), "")
    if letter:
        return _script_of_letter(letter)
    return "digits" if any(map(str.isdigit, word)) else "other marks"


@cache
def _script_of_letter(letter: str) -> str:
    return unicodedata.name(letter, "unnamed").split()[0].split("-")[0].capitalize()


def script_lines(scripts: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str]]:
    """Yield the name of each script in a report, and its statistics as text."""
    for name, row in scripts.items():
        rates = f"{row['fertility']} tokens per word, {row['unknown_rate']:.2%} unknown"
        single = f"{row['single_character_rate']:.1%} of tokens are one character"
        yield name, f"{row['words']:,} words, {rates}, {single}; {row['entries']:,} entries, {row['unused']:,} unused"


def _tokenised(
    entries: list[str], words: list[str], occurrences: NDArray[np.int64], longest_word: int
) -> tuple[NDArray[np.int64], ...]:
    """For each word: number of tokens, whether it is unknown, number of one-character tokens; and counts by entry."""
    match = Matcher({entry: i for i, entry in enumerate(entries)}, longest_word)
    pieces, ends = match("".join(f"{word}\n" for word in words))
    tokens = np.diff(ends, prepend=0)
    is_single = np.array([len(entry.removeprefix(CONTINUATION)) == 1 for entry in entries])
    singles = np.append(0, np.cumsum(is_single[pieces]))
    unknown = pieces[ends - tokens] == entries.index(UNK)
    used = np.bincount(pieces, np.repeat(occurrences, tokens), len(entries)).astype(np.int64)
    return tokens, unknown.astype(np.int64), singles[ends] - singles[ends - tokens], used


def _by_script(
    entries: list[str], words: list[str], columns: NDArray[np.int64], used: NDArray[np.int64]
) -> dict[str, dict[str, float]]:
    of_words, of_entries = (np.array([script(text) for text in texts]) for texts in (words, entries))
    # Otherwise [unused0] etc. would count as Latin entries that are never used.
    bracketed = np.array([entry.startswith("[") and len(entry) > 1 for entry in entries])
    sums = {str(name): columns[:, of_words == name].sum(1) for name in np.unique(of_words)}
    by_script: dict[str, dict[str, float]] = {}
    for name, row in sorted(sums.items(), key=lambda item: (-item[1][0], item[0])):
        if row[0] < SHOWN_SHARE * columns[0].sum():
            break
        uses = used[(of_entries == name) & ~bracketed]
        rates = _rates(row, uses)
        by_script[name] = {"words": int(row[0]), **rates, "entries": len(uses), "unused": int((uses == 0).sum())}
    return by_script


def _rates(row: NDArray[np.int64], used: NDArray[np.int64]) -> dict[str, float]:
    words, tokens, unknown, single = (int(value) for value in row)
    return {
        "fertility": round(tokens / max(1, words), 4),
        "unknown_rate": round(unknown / max(1, words), 6),
        "single_character_rate": round(single / max(1, tokens), 4),
        "unused_rate": round(float(np.mean(used == 0)), 4) if len(used) else 0.0,
    }
