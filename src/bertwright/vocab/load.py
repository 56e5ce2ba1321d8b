"""Reads and validates an existing vocabulary, and checks that it fits the text settings, the corpus, and artifacts made
with a vocabulary."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.vocab.config import MOST_UNKNOWN, VocabConfig
from bertwright.vocab.entries import CONTINUATION, SPECIALS, entries_of
from bertwright.vocab.report import measure
from bertwright.vocab.split import bert_splitter, count_words, normalizer

MOST_UNREACHABLE = 0.05
_AT_ONCE = 256
"""Number of entries that are normalised at once."""


def read_vocabulary(path: Path) -> list[str]:
    """The entries of a vocabulary file (`entries.entries_of`); `DataError` also for empty, duplicate or missing special
    entries."""
    entries = entries_of(path)
    if entries == [""]:
        raise DataError(f"{path} is empty. A vocab.txt has one entry per line, {', '.join(SPECIALS)} among them.")
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        if not entry:
            raise DataError(f"{path}, line {number:,}: empty entry. Remove the line or restore its entry.")
        if entry in seen:
            raise DataError(
                f"{path}, line {number:,}: {entry!r} is on line {seen[entry]:,} already. Do not delete a line: that "
                "would shift the ids of all entries after it, and with them those of networks and data that were made "
                f"with this file. Write an entry of no text on line {seen[entry]:,}, such as {_unused_name(entries)}: "
                "the tokenizers of BERT use the last of two."
            )
        seen[entry] = number
    if missing := [special for special in SPECIALS if special not in seen]:
        need = ", ".join(SPECIALS)
        raise DataError(f"{path} lacks {', '.join(missing)}: it is not a BERT vocabulary. Give one that has {need}.")
    return entries


def _unused_name(entries: list[str]) -> str:
    taken = set(entries)
    return next(name for name in (f"[unused{number}]" for number in count()) if name not in taken)


def check_fit(entries: list[str], config: VocabConfig, sentences: list[str]) -> None:
    """Raise `RecipeError` if the settings make too many entries unreachable, or too many words of the text unknown."""
    check_reachable(entries, config)
    settings = _settings(config)
    rate = _unknown_rate(entries, config.lower_case, config.strip_accents, sentences, config.longest_word)
    if rate > MOST_UNKNOWN:
        raise RecipeError(
            f"vocab.file={config.file} does not fit this corpus with {settings}: {rate:.1%} of the words are unknown "
            f"(at most {MOST_UNKNOWN:.0%} is sensible). {_best_settings(entries, config, sentences, rate)}"
        )


def check_reachable(entries: list[str], config: VocabConfig, key: str = "vocab.file", file: Path | None = None) -> None:
    """Raise `RecipeError` if the settings make too many entries unreachable; they are those of a `file` that `key`
    names."""
    settings = _settings(config)
    lost = unreachable(entries, config.lower_case, config.strip_accents)
    if len(lost) > MOST_UNREACHABLE * len(entries):
        raise RecipeError(
            f"{key}={file or config.file} does not fit {settings}: {len(lost):,} of its {len(entries):,} entries could "
            f"never occur (such as {', '.join(map(repr, lost[:3]))}). Give the settings it was made with."
        )


def _settings(config: VocabConfig) -> str:
    return f"vocab.lower_case={_toml(config.lower_case)}, vocab.strip_accents={_toml(config.strip_accents)}"


def unreachable(entries: list[str], lower_case: bool, strip_accents: bool) -> list[str]:
    """The entries (without ##) that cannot occur in normalised text, because normalisation changes them."""
    normal = normalizer(lower_case, strip_accents)
    # Special and unused entries do not occur in text, so normalisation is irrelevant to them.
    plain = [entry for entry in entries if not (entry.startswith("[") and entry.endswith("]"))]
    pieces = [entry.removeprefix(CONTINUATION) for entry in plain]
    # No setting changes letters and digits of ASCII, except for their case.
    pieces = [p for p in pieces if not (p.isascii() and p.isalnum() and (p == p.lower() or not lower_case))]
    lost = list[str]()
    for some in (pieces[start : start + _AT_ONCE] for start in range(0, len(pieces), _AT_ONCE)):
        text = " ".join(some)
        unchanged = normal.normalize_str(text).split() == text.split() == some
        # A call for each entry would take longer than all other checks of a recipe.
        if not unchanged:
            lost += [piece for piece in some if normal.normalize_str(piece).strip() != piece]
    return lost


def _best_settings(entries: list[str], config: VocabConfig, sentences: list[str], rate: float) -> str:
    pairs = [(False, False), (False, True), (True, False), (True, True)]
    rates = {pair: _unknown_rate(entries, *pair, sentences, config.longest_word) for pair in pairs}
    best = min(rates, key=rates.__getitem__)
    # Settings that do not halve the unknown words do not help: the vocabulary is for another language.
    if rates[best] > rate / 2:
        return "Use a vocabulary made for this language, or leave vocab.file out to train one."
    lower_case, strip_accents = map(_toml, best)
    return f"With vocab.lower_case={lower_case}, vocab.strip_accents={strip_accents} it would be {rates[best]:.1%}."


def _unknown_rate(
    entries: list[str], lower_case: bool, strip_accents: bool, sentences: list[str], longest_word: int
) -> float:
    words = count_words(sentences, bert_splitter(lower_case, strip_accents))
    return float(measure(entries, words, longest_word)["unknown_rate"])


def _toml(value: bool) -> str:
    return str(value).lower()


def check_same_vocabulary(artifact: Artifact, vocab: Artifact) -> None:
    """Raise `ArtifactError`, naming both, if `artifact` has the hash of another vocabulary than `vocab`.

    Every artifact built from token ids has the count `vocabulary`: SHA-256 over the entries and text settings.
    """
    recorded, expected = str(artifact.counts["vocabulary"]), str(vocab.counts["vocabulary"])
    # Ids of another vocabulary are valid numbers: nothing would raise an error, but the model would be useless.
    if recorded != expected:
        raise ArtifactError(
            f"{artifact.path} was made with another vocabulary than {vocab.path} ({recorded[:12]} instead of "
            f"{expected[:12]}): its token ids belong to other words. Give the vocabulary it was made with, or run the "
            f"stage {artifact.manifest['stage']} again."
        )
