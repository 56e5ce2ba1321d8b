"""What an import read and wrote: the facts in `import.json`, and the lines of them for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

from bertwright.core.numbers import pluralize, size_of
from bertwright.vocab.prune import Kept


class ImportedFile(TypedDict):
    """A file that was read."""

    name: str
    size: int
    sha256: str


class ImportedSource(TypedDict):
    """What was read."""

    name: str
    """The hub's name, or that of the folder or file."""
    kind: str
    """Such as "safetensors file"."""
    licence: str
    sha256: str
    """Over the hashes of the files."""
    precision: list[str]
    """The types of its numbers, such as "float32"."""
    files: list[ImportedFile]


class Part(TypedDict):
    """A part of the network."""

    tensors: int
    """How many were written; 0: none."""
    state: str
    """`loaded`, `left out`, or `absent`."""


class Rows(TypedDict):
    """Rows of the embedding."""

    read: int
    padding: int
    """Rows that belong to no entry, which were dropped."""


class Vocabulary(TypedDict):
    """The vocabulary, after rows were removed."""

    file: str
    entries: int
    lower_case: bool
    strip_accents: bool
    words_tried: int
    """Words put together from its own entries."""
    words_unknown: int
    """Those of them that are [UNK]."""
    compared: NotRequired[int]
    """Texts that the tokenizer of transformers gives the same ids, if it is installed."""


class Removed(Kept):
    """Entries that were removed."""

    texts: list[str]
    parameters_before: int
    parameters_after: int
    seconds: float


class ImportFacts(TypedDict):
    """The content of `import.json`."""

    bertwright: str
    source: ImportedSource
    architecture: str
    parameters: int
    bytes: int
    parts: dict[str, Part]
    tied_decoder: str
    rows: Rows
    left_out: dict[str, int]
    dropped: list[str]
    """Tensors that no network here has, if they were allowed."""
    vocabulary: Vocabulary
    modules: list[str]
    """Those of sentence-transformers that the source has."""
    removed: NotRequired[Removed]


def summary(facts: ImportFacts) -> dict[str, str | dict[str, str]]:
    """The facts in words, by what they are about."""
    source, rows = facts["source"], facts["rows"]
    padding = f"{rows['read']:,}, of which {rows['padding']:,} belong to no entry: dropped"
    size = sum(file["size"] for file in source["files"])
    lines: dict[str, str | dict[str, str]] = {
        "read": f"{source['kind']}, {pluralize(len(source['files']), 'file')}, {size_of(size)}, "
        f"{' and '.join(source['precision'])}",
        "source": f"{source['name']} (SHA-256 {source['sha256'][:12]})",
        "licence": source["licence"] or "not stated: find out before you publish what you make of it (--licence)",
        "network": f"{facts['architecture']}, {facts['parameters']:,} parameters",
        **{name: _part(name, part) for name, part in facts["parts"].items()},
        **({"decoder": facts["tied_decoder"]} if facts["tied_decoder"] else {}),
        "rows": padding if rows["padding"] else f"{rows['read']:,}, one for each entry",
        "left out": ", ".join(f"{what} ({pluralize(count, 'tensor')})" for what, count in facts["left_out"].items())
        or "nothing",
        **({"dropped, unknown here": ", ".join(facts["dropped"])} if facts["dropped"] else {}),
        "vocabulary": _vocabulary(facts["vocabulary"]),
        "unknown words": _unknown(facts["vocabulary"]),
        **({"vector of a text": ", ".join(facts["modules"]) + " (the source's)"} if facts["modules"] else {}),
    }
    if removed := facts.get("removed"):
        lines |= dict(_removed(removed))
    return {**lines, "written": f"model.safetensors in float32, {size_of(facts['bytes'])}"}


def _part(name: str, part: Part) -> str:
    match part["state"]:
        case "loaded":
            return f"loaded, {part['tensors']} of {part['tensors']} tensors"
        case "left out":
            return "in the source, but no head of this network reads it: left out"
        case _:
            fresh = (
                "; pre-training that goes on from it starts with a fresh one" if name.endswith("masked words") else ""
            )
            return f"not in the source{fresh}"


def _vocabulary(words: Vocabulary) -> str:
    case = "text is lower-cased" if words["lower_case"] else "case is kept"
    accents = "accents are removed" if words["strip_accents"] else "accents are kept"
    return f"{words['entries']:,} WordPiece entries ({words['file']}); {case}, {accents}"


def _unknown(words: Vocabulary) -> str:
    share = f"{words['words_unknown']:,} of {words['words_tried']:,} words of its own entries"
    same = words.get("compared")
    return f"{share}{f'; transformers gives our ids for {same} texts' if same else ''}"


def _removed(removed: Removed) -> Iterator[tuple[str, str]]:
    yield (
        "entries",
        f"{removed['entries_before']:,} -> {removed['entries_after']:,}; the texts use {removed['used']:,}, beside "
        f"single characters of {', '.join(removed['scripts']) or 'no script'}",
    )
    yield "parameters", f"{removed['parameters_before']:,} -> {removed['parameters_after']:,}"
    changed, tokens, unknown = removed["changed_tokens"], removed["tokens"], removed["unknown_tokens"]
    yield (
        "these texts",
        f"{changed:,} of {tokens:,} tokens ({changed / max(1, tokens):.2%}) are entries that are gone"
        if changed
        else f"the pieces of all {tokens:,} tokens are unchanged"
        f"{f'; {unknown:,} ({unknown / tokens:.2%}) are [UNK]' if unknown else ''}",
    )
    words, other = removed["heldout_words"], removed["heldout_changed_words"]
    if words:
        yield (
            "other such texts",
            f"about {other / words:.2%} of their words get other pieces (measured on {words:,} held-out words)",
        )
    yield "counted in", f"{removed['seconds']:.0f} s"
