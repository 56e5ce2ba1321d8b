"""The sections about the text: what happened to the documents, their sources, whether evaluation texts are in the
corpus, and how well the vocabulary fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.core.numbers import number, percent, pluralize, size_of
from bertwright.page.markup import Content, Element, bar, definitions, element, p, small, table
from bertwright.report.facts import Facts

# Repeated here because the report reads what stages wrote and imports none of them.
_LEFT_OUT = {
    "duplicates": "same text as an earlier one",
    "near_duplicates": "nearly the same text as an earlier one",
    "emptied": "too short without repeated paragraphs",
    "not_drawn": "not drawn (weight of the source)",
}
"""Why documents that passed the filter are not in the corpus, in the order in which this is decided."""
_RULES = {
    "reference": "references",
    "boilerplate": "boilerplate",
    "email": "e-mail addresses",
    "phone": "telephone numbers",
}


def corpus(facts: Facts) -> Content:
    """The funnel from pages to kept documents with the reasons for dropping documents, followed by the sources."""
    counts = facts.counts("corpus")
    # Plain text has no pages: the total is then the number of documents.
    total = max(counts["pages"], counts["documents"], 1)
    text = max(1, counts["bytes"]["documents"])
    shown = [
        (
            element("span", name, class_="kept" if kept else "lost"),
            f"{count:,}",
            (bar(count / total), small(percent(count / total))),
            "" if size is None else f"{size:,}",
            "" if size is None else percent(size / text),
        )
        for name, count, size, kept in _steps(counts)
        if count or kept
    ]
    return (
        p("From the pages of the sources to the documents that were kept; indented lines show what was dropped."),
        table(("step", "count", "share", "bytes of text", "share of bytes"), shown, "funnel"),
        definitions(_text(counts)),
        _sources(counts["sources"]),
        _contamination(counts["contamination"]),
    )


def _steps(counts: Mapping[str, Any]) -> list[tuple[str, int, int | None, bool]]:
    """Each step's name, count, bytes of text (None if there is no text yet), and whether it is kept."""
    sizes = counts["bytes"]
    dropped = sorted(counts["dropped"].items(), key=lambda item: (-item[1], item[0]))
    pages = [
        ("pages", counts["pages"], None, True),
        ("redirects", counts["redirects"], None, False),
        ("other namespaces", counts["other_namespaces"], None, False),
        ("disambiguation pages", counts["disambiguations"], None, False),
        (f"pages of {counts.get('books', 0):,} scanned books", counts.get("scanned_pages", 0), None, False),
    ]
    return [
        *(pages if counts["pages"] else []),
        ("documents", counts["documents"], sizes["documents"], True),
        *((f"{counts['reasons'][name]} ({name})", count, sizes["dropped"][name], False) for name, count in dropped),
        *((words, counts[name], sizes[name], False) for name, words in _LEFT_OUT.items()),
        ("kept documents", counts["kept"], sizes["kept"], True),
    ]


def _text(counts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the corpus contains and what was removed from its documents; zero counts and redundant lines are omitted."""
    yield "sentences", number(counts["sentences"])
    yield "words", number(counts["words"])
    yield "text", size_of(counts["text_bytes"])
    yield "read", size_of(counts["source_bytes"])
    # Without weights each document occurs once, and this line would repeat the number.
    if counts["copies"] != counts["kept"]:
        yield "documents with their copies", number(counts["copies"])
    if counts["duplicate_paragraphs"]:
        yield "repeated paragraphs left out", number(counts["duplicate_paragraphs"])
    for rule, count in counts["removed_paragraphs"].items():
        yield f"paragraphs removed: {_RULES.get(rule, rule)}", number(count)
    if removed := counts["bytes"]["removed_paragraphs"]:
        yield "bytes of removed paragraphs", number(removed)
    for rule, count in counts["masked"].items():
        yield f"masked: {_RULES.get(rule, rule)}", number(count)


def _sources(sources: Sequence[Mapping[str, Any]]) -> Element:
    """A table with a row for each source; the numbers count documents and words of the corpus."""
    rows = [
        (
            (source["name"], (element("br"), small(source["base"])) if source["base"] else ""),
            source["format"],
            number(source["files"]),
            number(source["weight"]),
            source["licence"],
            f"{source['kept']:,} of {source['documents']:,}",
            number(source["words"]),
            f"no, the file is truncated; {cut['lost_bytes']:,} bytes not used" if (cut := source["cut"]) else "yes",
        )
        for source in sources
    ]
    return table(
        ("source", "format", "files", "weight", "licence", "documents kept", "words", "whole"), rows, "sources"
    )


def _contamination(texts: Mapping[str, Mapping[str, Any]]) -> Content:
    if not texts:
        return ()
    rows = [
        (name, _hits(counts["found"], counts["sentences"]), _hits(counts["short_found"], counts["short"]))
        for name, counts in texts.items()
    ]
    run = next(iter(texts.values())).get("run", "13 words")
    about = (
        f"How much of the evaluation texts occurs in the corpus. A sentence counts if {run} in a row of it occur in "
        "one document; a shorter one counts if it is a complete sentence there."
    )
    return p(about), table(("text", "sentences found", "shorter ones found"), rows)


def _hits(count: int, of: int) -> Content:
    return f"{count:,} of {of:,}", (" ", small(percent(count / of))) if of else ""


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
        ("unknown words", percent(counts["unknown_rate"], 3)),
        ("characters in unknown words", percent(counts["unknown_character_rate"], 3)),
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
        ("unknown words", percent(text["unknown_rate"], 3)),
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
    kept = f"{alphabet['characters']:,} of {alphabet['of']:,}, {percent(alphabet['coverage'], 3)} of the text"
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
            percent(row["unknown_rate"], 3),
            percent(row["single_character_rate"]),
            number(row["entries"]),
            number(row["unused"]),
        )
        for name, row in scripts.items()
    ]
    head = ("script", "words", "tokens per word", "unknown", "tokens of one character", "entries", "not met")
    return table(head, rows)
