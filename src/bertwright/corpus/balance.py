"""The balance of all documents and bytes, kept and dropped: counts for the manifest and a table for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.corpus.decisions import DECISIONS, KEPT_PARAGRAPHS, Outcome
from bertwright.corpus.filter import REASONS
from bertwright.corpus.part import DOCUMENTS, PARAGRAPHS, read_array
from bertwright.corpus.parts import Parts

_COUNTED = {
    Outcome.KEPT: "kept",
    Outcome.DUPLICATE: "duplicates",
    Outcome.NEAR_DUPLICATE: "near_duplicates",
    Outcome.EMPTIED: "emptied",
    Outcome.NOT_DRAWN: "not_drawn",
}
"""The name of the document count for each outcome."""
LEFT_OUT = {
    "duplicates": "same text as an earlier one",
    "near_duplicates": "nearly the same text as an earlier one",
    "emptied": "too short without repeated paragraphs",
    "not_drawn": "not drawn (weight of the source)",
}
"""Documents that passed the filter and are not in the corpus."""
_PAGES = ("pages", "redirects", "other_namespaces", "disambiguations", "scanned_pages", "books", "documents")
_NAMESPACES = 6
"""Most namespaces that the table names."""
_NAME = 38
"""Width of the first column of the table, in characters."""
_MUCH = 0.1
"""Share of the bytes above which a loss, for one reason or by the filter as a whole, causes a warning."""
_REPEATED = {
    "duplicates": ("documents with the same text as an earlier one", "a source is named twice", "documents=false"),
    "near_duplicates": (
        "documents with nearly the same text as an earlier one",
        "many pages follow the same template",
        "near_documents=false",
    ),
    "emptied": (
        "documents too short without repeated paragraphs",
        "pages are made of the same parts",
        "paragraphs=false",
    ),
    "duplicate_paragraphs": ("repeated paragraphs", "pages are made of the same parts", "paragraphs=false"),
}
"""For each kind of repetition: what is left out, the most likely cause, and the key of `deduplicate` that keeps it."""
_KEEPS = {
    "reference": "references=keep",
    "boilerplate": "boilerplate=false (and no patterns)",
    "email": "emails=keep",
    "phone": "phones=keep",
}
"""For each reason to remove paragraphs, the key of `filter` that keeps them."""


def count(sources: Sequence[Parts]) -> dict[str, Any]:
    """`counts` of the manifest: what extraction and the decisions about documents counted, in total and by source."""
    read = sum((parts.counts for parts in sources), Counter[str]())
    tallies = [tally(parts.paths) for parts in sources]
    # Ties are broken by name: the order must not depend on which part was gathered first.
    by_count = sorted(read.items(), key=lambda item: (-item[1], item[0]))
    dropped, removed, masked, namespaces = (
        {key.removeprefix(prefix): n for key, n in by_count if key.startswith(prefix)}
        for prefix in ("dropped.", "removed.", "masked.", "namespaces.")
    )
    sizes = sum((tally_bytes(parts.paths) for parts in sources), Counter[str]())
    return {
        **{key: read[key] for key in _PAGES},
        "namespaces": {name: {"pages": n, "bytes": read[f"namespace_bytes.{name}"]} for name, n in namespaces.items()},
        "dropped": dropped,
        # The report reads only manifests, so the phrases must be stored here.
        "reasons": {name: REASONS[name].meaning for name in dropped},
        "removed_paragraphs": removed,
        "masked": masked,
        **{key: sum(tallied[key] for tallied in tallies) for key in tallies[0]},
        "bytes": {
            "documents": read["document_bytes"],
            "dropped": {name: read[f"dropped_bytes.{name}"] for name in dropped},
            "removed_paragraphs": read["removed_bytes"],
            **{name: sizes[name] for name in ("kept", *LEFT_OUT, "duplicate_paragraphs")},
        },
        "source_bytes": read["source_bytes"],
        "sources": [
            {**parts.facts, "pages": parts.counts["pages"], "documents": parts.counts["documents"], **tallied}
            for parts, tallied in zip(sources, tallies, strict=True)
        ],
    }


def tally(parts: Iterable[Path]) -> Counter[str]:
    """The number of documents of these parts by outcome, and their totals in the corpus, including copies."""
    counts = Counter[str]()
    for part in parts:
        rows = read_array(part.with_suffix(DECISIONS))
        kept_paragraphs = read_array(part.with_suffix(KEPT_PARAGRAPHS))
        kept = np.repeat(rows["outcome"] == Outcome.KEPT, read_array(part.with_suffix(DOCUMENTS))["paragraphs"])
        for outcome, count in _COUNTED.items():
            counts[count] += int((rows["outcome"] == outcome).sum())
        counts["duplicate_paragraphs"] += int((kept & ~kept_paragraphs).sum())
        counts["copies"] += int(rows["copies"].sum(dtype=np.int64))
        for count, name in (("sentences", "sentences"), ("words", "words"), ("text_bytes", "bytes")):
            counts[count] += int((rows["copies"] * rows[name]).sum())
    return counts


def tally_bytes(parts: Iterable[Path]) -> Counter[str]:
    """The bytes of the documents of these parts by outcome, each document counted once; repeated paragraphs of kept
    documents are counted separately.
    """
    counts = Counter[str]()
    for part in parts:
        rows, documents = read_array(part.with_suffix(DECISIONS)), read_array(part.with_suffix(DOCUMENTS))
        owner = np.repeat(np.arange(len(documents)), documents["paragraphs"])
        whole = np.bincount(owner, read_array(part.with_suffix(PARAGRAPHS))["bytes"], len(documents)) + 1
        for outcome, count in _COUNTED.items():
            counts[count] += int(whole[rows["outcome"] == outcome].sum())
        kept = rows["outcome"] == Outcome.KEPT
        repeated = int((whole[kept] - rows["bytes"][kept]).sum())
        counts["duplicate_paragraphs"] += repeated
        counts["kept"] -= repeated
    return counts


def balance(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table of documents and bytes kept and dropped, by reason, and warnings of large losses."""
    sizes, documents = counts["bytes"], counts["documents"]
    rows = [(REASONS[name].meaning, count, sizes["dropped"][name]) for name, count in counts["dropped"].items()]
    rows += [(words, counts[name], sizes[name]) for name, words in LEFT_OUT.items() if counts[name]]
    yield _row("corpus: documents and bytes", "documents", "", "bytes", "")
    for words, count, size in [("kept", counts["kept"], sizes["kept"]), *rows]:
        yield _row(words, f"{count:,}", _share(count, documents), f"{size:,}", _share(size, sizes["documents"]))
    if size := sizes["duplicate_paragraphs"]:
        yield _row("repeated paragraphs of kept documents", "", "", f"{size:,}", _share(size, sizes["documents"]))
    if count := sum(counts["removed_paragraphs"].values()):
        size = sizes["removed_paragraphs"]
        yield _row(f"{count:,} paragraphs removed before that", "", "", f"{size:,}", "")
    yield _row("all", f"{documents:,}", "", f"{sizes['documents']:,}", "")
    yield from _passed_over(counts["namespaces"])
    yield from _warnings(counts)


def _passed_over(namespaces: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a row for each of the largest namespaces whose pages are not read, and one for the others."""
    if not namespaces:
        return
    rows = sorted(((size["bytes"], size["pages"], name) for name, size in namespaces.items()), reverse=True)
    shown, others = rows[:_NAMESPACES], rows[_NAMESPACES:]
    if others:
        shown.append((sum(row[0] for row in others), sum(row[1] for row in others), f"{len(others)} others"))
    yield _row("corpus: namespaces passed over", "pages", "", "wikitext", "")
    for size, pages, name in shown:
        yield _row(name[:_NAME], f"{pages:,}", "", f"{size:,}", "")


def _warnings(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each large loss, or one if only the sum of all losses is large."""
    single = list(_large(counts))
    yield from single
    sizes = counts["bytes"]
    # Text that was not drawn is no loss: the weight of its source says so.
    losses = {f"filtered out as {name!r}": size for name, size in sizes["dropped"].items()}
    losses |= {f"dropped as {what}": sizes[name] for name, (what, *_) in _REPEATED.items()}
    losses["removed as single paragraphs"] = sizes["removed_paragraphs"]
    lost, whole = sum(losses.values()), sizes["documents"] + sizes["removed_paragraphs"]
    if lost > _MUCH * whole and not single:
        most = sorted(losses, key=lambda name: -losses[name])[:3]
        shares = ", ".join(f"{_share(losses[name], whole)} {name}" for name in most if losses[name])
        yield (
            f"corpus: WARNING: {_share(lost, whole)} of the text was lost, for several reasons: {shares}. If this text "
            "should be kept, change the keys of corpus.filter and corpus.deduplicate that dropped it. `bertwright "
            "corpus RECIPE --dropped` shows what was dropped."
        )


def _large(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each large loss: by the filter, by repetition, by paragraphs removed before the filter."""
    sizes = counts["bytes"]
    if (lost := sum(sizes["dropped"].values())) > _MUCH * sizes["documents"]:
        worst = max(sizes["dropped"], key=lambda name: sizes["dropped"][name])
        yield (
            f"corpus: WARNING: the filter dropped {_share(lost, sizes['documents'])} of the text, most of it as "
            f"{worst!r} ({REASONS[worst].meaning}). Most likely cause: {REASONS[worst].remedy}. `bertwright corpus "
            "RECIPE --dropped` shows what was dropped."
        )
    for name, (what, why, key) in _REPEATED.items():
        if sizes[name] > _MUCH * sizes["documents"]:
            yield (
                f"corpus: WARNING: {_share(sizes[name], sizes['documents'])} of the text was dropped as {what}. "
                f"Most likely cause: {why}. Set corpus.deduplicate.{key} to keep them."
            )
    whole = sizes["documents"] + sizes["removed_paragraphs"]
    if sizes["removed_paragraphs"] > _MUCH * whole:
        worst = max(counts["removed_paragraphs"], key=counts["removed_paragraphs"].__getitem__)
        yield (
            f"corpus: WARNING: {_share(sizes['removed_paragraphs'], whole)} of the text was removed as single "
            f"paragraphs, most of them as {worst!r}. Set corpus.filter.{_KEEPS[worst]} to keep them."
        )


def _row(words: str, documents: str, share: str, size: str, part: str) -> str:
    return f"{words:<{_NAME}} {documents:>12} {share:>6} {size:>14} {part:>6}".rstrip()


def _share(part: int, of: int) -> str:
    return f"{part / of:.1%}" if of else ""
