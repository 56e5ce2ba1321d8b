"""Types of the counts in the manifest of the `corpus` stage."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Text


class Size(TypedDict, total=False):
    """The amount of text; `text_bytes` is its size in UTF-8."""

    kept: Count
    documents: Count
    sentences: Count
    words: Count
    text_bytes: Count


class _Cut(TypedDict, total=False):
    after: Text
    lost_bytes: Count


class _Source(Size, total=False):
    name: Text
    format: Text
    files: Count
    database: Text
    base: Text
    licence: Text
    weight: Number
    cut: _Cut | None


class Overlap(TypedDict, total=False):
    """The number of sentences of another text found in this one; those shorter than a `run` are `short`."""

    run: Text
    sentences: Count
    found: Count
    share: Number
    short: Count
    short_found: Count


class _Bytes(TypedDict, total=False):
    documents: Count
    dropped: dict[Text, Count]
    kept: Count
    duplicates: Count
    near_duplicates: Count
    emptied: Count
    not_drawn: Count
    duplicate_paragraphs: Count
    removed_paragraphs: Count


class _Namespace(TypedDict):
    pages: Count
    bytes: Count


class Counts(Size, total=False):
    """The counts of the entire corpus."""

    bytes: _Bytes
    pages: Count
    redirects: Count
    other_namespaces: Count
    namespaces: dict[Text, _Namespace]
    scanned_pages: Count
    books: Count
    disambiguations: Count
    dropped: dict[Text, Count]
    reasons: dict[Text, Text]
    removed_paragraphs: dict[Text, Count]
    masked: dict[Text, Count]
    copies: Count
    duplicates: Count
    near_duplicates: Count
    emptied: Count
    not_drawn: Count
    duplicate_paragraphs: Count
    source_bytes: Count
    shards: Count
    sources: list[_Source]
    contamination: dict[Text, Overlap]


class _Filter(TypedDict, total=False):
    keep_dropped: Flag


class _Corpus(TypedDict, total=False):
    source: list[dict[Text, Any]]
    language: Text
    filter: _Filter


class Settings(TypedDict, total=False):
    """The settings of a corpus that others read."""

    corpus: _Corpus
