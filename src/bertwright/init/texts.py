"""What is known of texts of the user's own: how much there is, of what documents, and for a network that is continued,
how its vocabulary cuts them. Measured on an excerpt, with the network's entries but without its tokenizer's library."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.excerpt import Excerpt, read_excerpt
from bertwright.corpus.filter import REASONS
from bertwright.corpus.language import detect
from bertwright.corpus.sources.file import Reader
from bertwright.corpus.sources.source import Source, open_source
from bertwright.corpus.wikis import wikis
from bertwright.estimate.known_data import source_text
from bertwright.vocab.config import MOST_UNKNOWN
from bertwright.vocab.entries import TextSettings
from bertwright.vocab.report import measure
from bertwright.vocab.split import bert_splitter, count_words

_READ = 1 << 21
"""Bytes that are read of each source."""
_DOWNLOADS = Path("downloads")
_LOST = 0.1
"""Share of the text from which the filter, made for wikis, is turned off."""
_FEW_LINES = 20

T = TypeVar("T", bound="Texts")


@dataclass(frozen=True)
class Cut:
    """How a vocabulary cuts a text."""

    fertility: float
    """Tokens per word."""
    unknown: float
    """Share of the words that become [UNK]."""
    single: float
    """Share of the tokens that are one character."""


@dataclass(frozen=True)
class Texts:
    """The sources of one kind of text."""

    sources: tuple[SourceConfig, ...]
    """As in the recipe."""
    language: str
    bytes: float
    """Bytes of text that the filter keeps, about."""
    documents: int
    """Documents that the filter keeps, about."""
    dropped: float
    """Share of the text that the filter drops."""
    reason: str
    """Why it drops most of that, a name in `REASONS`; "" if it drops nothing."""

    @property
    def filter_is_off(self) -> bool:
        """Whether the filter is turned off, because it would drop too much of the text."""
        return self.dropped > _LOST


@dataclass(frozen=True)
class CutTexts(Texts):
    """Texts and the vocabulary that cuts them."""

    tokens: float
    """Tokens of the network's vocabulary, about."""
    typical: int
    """Tokens of the document in which the median token is: half of the text is in longer ones."""
    cut: Cut


class NothingKeptError(RecipeError):
    """There is no text in the sources, or the filter drops all of it."""

    def __init__(self, named: str, reason: str) -> None:
        self.reason = reason
        what = f"the filter would drop all of it: {REASONS[reason].meaning}" if reason else "there is no text in it"
        super().__init__(f"{named}: {what}. Give other text.")


class NoLanguageError(RecipeError):
    """The language of a text is not clear."""


def language_of(paths: Sequence[str], option: str = "--source") -> str:
    """The language that most of the text is in, as the code of a wiki. Raises `NoLanguageError` if that is not clear,
    and `RecipeError` if there is no text; `option` is how the paths were given."""
    votes = Counter[str]()
    for path in paths:
        config = CorpusConfig(source=(_source(path, ""),), language="en", filter={"enabled": False})
        for sentences in _excerpt(config, config.source[0], 1 << 18).kept:
            text = " ".join(sentences)
            shares, sure = detect(text[:4000])
            votes[shares[0][0] if sure else "un"] += len(text)
    if not votes:
        raise NothingKeptError(f"{option} {', '.join(paths)}", "")
    found, size = votes.most_common(1)[0]
    if found not in wikis() or size < 0.5 * votes.total():
        raise NoLanguageError(
            f"{option} {', '.join(paths)}: the language of the text is not clear. Give it: --language CODE, the code "
            "of its Wikipedia, such as hu."
        )
    return found


def cut_texts(
    paths: Sequence[str], name: str, language: str, entries: list[str], settings: TextSettings, filtered: bool = True
) -> CutTexts:
    """What is known of the texts at `paths`, as sources called `name`, for a vocabulary of `entries`.

    Raises `RecipeError` if nothing can be learned from them, and what opening them raises.
    """
    found, kept = _read(paths, name, language, filtered)
    cut, a_byte, typical = _cut(kept, entries, settings)
    return CutTexts(**vars(found), tokens=a_byte * found.bytes, typical=typical, cut=cut)


def read_own_texts(paths: Sequence[str], language: str) -> Texts:
    """What is known of texts to learn from, which are not filtered if that would drop much of them; `dropped` then says
    how much. Raises `RecipeError` if they are in another language, and what opening them raises."""
    whole, _ = _read(paths, "", language, filtered=False)
    return _unfiltered_if_much_is_dropped(whole, lambda: _read(paths, "", language, filtered=True)[0])


def cut_own_texts(paths: Sequence[str], language: str, entries: list[str], settings: TextSettings) -> CutTexts:
    """As `read_own_texts` for the text that a network is continued on, with `entries`, its vocabulary; raises
    `RecipeError` also if that does not fit the text at all."""
    whole = cut_texts(paths, "own", language, entries, settings, filtered=False)
    if whole.cut.unknown > MOST_UNKNOWN:
        raise RecipeError(
            f"--source {', '.join(paths)}: {whole.cut.unknown:.0%} of the words are unknown to the vocabulary of the "
            f"network (at most {MOST_UNKNOWN:.0%} is sensible): it was made for another language or script. Give a "
            "network for this text, or give this one a new vocabulary: docs/how-to/new-vocabulary.md."
        )
    return _unfiltered_if_much_is_dropped(whole, lambda: cut_texts(paths, "own", language, entries, settings))


def _unfiltered_if_much_is_dropped(whole: T, read_filtered: Callable[[], T]) -> T:
    try:
        found = read_filtered()
    except NothingKeptError as error:
        found = replace(whole, dropped=1.0, reason=error.reason)
    if found.filter_is_off and found.reason == "language":
        paths = ", ".join(source.path for source in whole.sources)
        raise RecipeError(
            f"--language {whole.language}: {found.dropped:.0%} of the text in {paths} is in another language. "
            "Give the language of the text, or other text."
        )
    return replace(whole, dropped=found.dropped, reason=found.reason) if found.filter_is_off else found


def _read(paths: Sequence[str], name: str, language: str, filtered: bool) -> tuple[Texts, list[list[str]]]:
    """What is known of the texts without a vocabulary, and the sentences of the excerpt's documents."""
    sources = tuple(_source(path, name) for path in paths)
    config = CorpusConfig(source=sources, language=language, filter={"enabled": filtered})
    kept, dropped, seen = list[list[str]](), Counter[str](), 0
    size = documents = 0.0
    for source in sources:
        excerpt = _excerpt(config, source, _READ)
        read = sum(map(_bytes, (each.sentences for each in excerpt.documents)))
        for each in excerpt.documents:
            if each.reason:
                dropped[each.reason] += _bytes(each.sentences)
        own = sum(map(_bytes, excerpt.kept))
        # All of it, as far as is known: a part of a file says how much text the rest has.
        whole = float(read) if excerpt.whole else max(float(read), source_text(source, _DOWNLOADS)[0] or 0.0)
        scale = whole / max(read, 1)
        size, documents, seen = size + own * scale, documents + len(excerpt.kept) * scale, seen + read
        kept += excerpt.kept
    reason = dropped.most_common(1)[0][0] if dropped else ""
    if not kept:
        raise NothingKeptError(f"--{'general' if name == 'general' else 'source'} {', '.join(paths)}", reason)
    return Texts(sources, language, size, round(documents), dropped.total() / max(seen, 1), reason), kept


def _source(path: str, name: str) -> SourceConfig:
    """The source at a path, with the meaning of its lines if it is plain text."""
    source = SourceConfig(path=path, name=name)
    opened = open_source(source, _DOWNLOADS, SILENT, copying=False)
    if opened.files[0].format != "text":
        return source
    head = b"".join(block for block, _ in zip(Reader(opened.files[0]), range(1), strict=False))
    lines = meaning_of_lines(head[: 1 << 20].decode("utf-8", "replace").splitlines(), len(opened.files))
    return source.model_copy(update={"lines": lines})


def meaning_of_lines(lines: Sequence[str], files: int = 1) -> str:
    """What a line of plain text is, as in `corpus.source.lines`, judged by the first lines of one of `files` files."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return "paragraphs"
    blank = any(not line.strip() for line in lines[: max(0, len(lines) - 1)])
    if blank:
        # Broken lines are of similar length, and most do not end a sentence.
        inside = [line for line, after in itertools.pairwise(lines) if line.strip() and after.strip()]
        broken = sum(not re.search(r"[.!?…:;\"'”»)\]]\s*$", line) for line in inside)
        long = max(map(len, filled))
        if (
            len(inside) > len(filled) / 2
            and broken > 0.6 * len(inside)
            and long <= 120
            and median(map(len, inside)) > 40
        ):
            return "wrapped"
        return "paragraphs"
    # Without a blank line a file would be one document.
    return "articles" if files == 1 and len(filled) >= _FEW_LINES else "paragraphs"


def _excerpt(config: CorpusConfig, source: SourceConfig, most: int) -> Excerpt:
    opened: Source = open_source(source, _DOWNLOADS, SILENT, copying=False)
    return read_excerpt(config, opened, most)


def _cut(documents: list[list[str]], entries: list[str], settings: TextSettings) -> tuple[Cut, float, int]:
    """How the vocabulary cuts the documents, tokens per byte, and the tokens of the typical document."""
    words = count_words([s for document in documents for s in document], bert_splitter(*settings[:2]))
    found = measure(entries, words, settings.longest_word)
    sizes = sorted(map(_bytes, documents))
    a_byte = found["sample_tokens"] / max(1, sum(sizes))
    before = 0
    typical = sizes[-1]
    for size in sizes:
        before += size
        if 2 * before >= sum(sizes):
            typical = size
            break
    cut = Cut(found["fertility"], found["unknown_rate"], found["single_character_rate"])
    return cut, a_byte, max(1, round(typical * a_byte))


def _bytes(sentences: Sequence[str]) -> int:
    return sum(len(sentence.encode()) + 1 for sentence in sentences)
