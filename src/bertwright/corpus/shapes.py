"""What `corpus` counts, as its manifest has it."""

from __future__ import annotations

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Number, Text


class Size(TypedDict, total=False):
    """How much text there is; `text_bytes` are those of UTF-8."""

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
    """How many sentences of another text stand in this one; those under 13 words, `short`, are counted apart."""

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


class Counts(Size, total=False):
    """Of the whole corpus."""

    bytes: _Bytes
    pages: Count
    redirects: Count
    other_namespaces: Count
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
