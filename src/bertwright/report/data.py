"""The sections of data: what became of the documents, the vocabulary, and the examples."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from bertwright.report.facts import Facts
from bertwright.report.words import bar, definitions, large, number, percent, table


def corpus(facts: Facts) -> str:
    """The way from pages to kept documents, with the reasons for which documents were dropped."""
    counts = facts.counts("corpus")
    total = max(counts["pages"], counts["documents"], 1)
    rows = [
        ("kept" if kept else "lost", name, count, count / total)
        for name, count, kept in _steps(counts)
        if count or kept
    ]
    shown = [
        (f'<span class="{kind}">{escape(name)}</span>', f"{count:,}", f"{bar(share)}<small>{percent(share)}</small>")
        for kind, name, count, share in rows
    ]
    facts_of_text = [
        ("sentences", number(counts["sentences"])),
        ("words", number(counts["words"])),
        ("text", f"{counts['text_bytes'] / 1e6:,.1f} MB"),
        ("source", f"{counts['source_bytes'] / 1e6:,.1f} MB"),
    ]
    return (
        "<p>From the pages of the source to the documents that were kept; indented lines are what was left out.</p>"
        + table(("step", "count", "share"), shown, "funnel")
        + definitions(facts_of_text)
        + _sources(counts["sources"])
    )


def _steps(counts: Mapping[str, Any]) -> list[tuple[str, int, bool]]:
    dropped = sorted(counts["dropped"].items(), key=lambda item: (-item[1], item[0]))
    pages = [
        ("pages", counts["pages"], True),
        ("redirects", counts["redirects"], False),
        ("other namespaces", counts["other_namespaces"], False),
        ("disambiguation pages", counts["disambiguations"], False),
    ]
    return [
        *(pages if counts["pages"] else []),
        ("documents", counts["documents"], True),
        *((f"{counts['reasons'][name]} ({name})", count, False) for name, count in dropped),
        ("same text as an earlier one", counts["duplicates"], False),
        ("kept documents", counts["kept"], True),
    ]


def _sources(sources: list[Mapping[str, Any]]) -> str:
    rows = [
        (
            escape(source["name"] or "plain text"),
            escape(source["base"] or "–"),
            escape(source["licence"]),
            escape(_cut(source["cut"])),
        )
        for source in sources
    ]
    return table(("source", "address", "licence", "whole"), rows)


def _cut(cut: Mapping[str, Any] | None) -> str:
    return "yes" if cut is None else f"no, it ends early; {cut['lost_bytes']:,} bytes of a cut page left out"


def vocabulary(facts: Facts) -> str:
    """How well the vocabulary fits the text."""
    counts = facts.counts("vocab")
    case = "kept" if not counts["lower_case"] else "lower-cased"
    accents = "kept" if not counts["strip_accents"] else "removed"
    rows = [
        ("entries", number(counts["entries"])),
        ("tokens per word", number(counts["fertility"])),
        ("unknown words", f"{counts['unknown_rate'] * 100:.3f}\u00a0%"),
        ("tokens of one character", percent(counts["single_character_rate"])),
        ("entries not met in the sample", percent(counts["unused_rate"])),
        ("case", case),
        ("accents", accents),
    ]
    return f"<p>WordPiece, measured on {counts['sample_words']:,} words of the corpus.</p>" + definitions(rows)


def examples(facts: Facts) -> str:
    """How much text is trained on, how much is held out, and the sequences made of it."""
    counts = facts.counts("examples")
    rows = [
        (
            {"train": "training", "heldout": "held out"}[split],
            number(counts[split]["documents"]),
            number(counts[split]["sentences"]),
            number(counts[split]["tokens"]),
        )
        for split in ("train", "heldout")
    ]
    plans = [
        (f"sequences of set {name}", f"{large(sum(per_pass))} in {len(per_pass)} passes")
        for name, per_pass in counts["train"]["rows"].items()
    ]
    foreign = [
        (f"{key}.data", f"{large(data['examples'])} examples made elsewhere ({data['kind']})")
        for key, data in counts.get("foreign", {}).items()
    ]
    return table(("part", "documents", "sentences", "tokens"), rows) + definitions(plans + foreign)
