"""The origin of a model's text for its card: the sources of a corpus, or files made elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.files import read_json
from bertwright.examples.config import TextsConfig

MOST_FILES = 20
"""Maximum number of files per phase listed in the card; the examples artifact lists all."""


@dataclass(frozen=True)
class Origin:
    """What the card says about the text."""

    language: str
    """Language code; "" if not known."""
    fertility: float
    """Tokens per word."""
    unit: str
    """What the held-out set consists of: documents or examples."""
    text: str
    """The section about the text, in Markdown."""


def origin_of(source: Artifact, vocab: Artifact, texts: TextsConfig) -> Origin:
    """The origin of the text in `source`, a corpus or examples made elsewhere; `texts` has what the files do not
    tell."""
    if source.manifest["stage"] == "corpus":
        language = source.manifest["config"]["corpus"]["language"]
        return Origin(language, vocab.counts["fertility"], "documents", _sources(source))
    if "labels" in source.counts:
        return Origin(texts.language, source.counts["text"]["fertility"], "texts", _labelled(source, texts))
    splits = source.counts["heldout"]["phases"].values()
    unit = "documents" if all("documents" in split for split in splits) else "examples"
    return Origin(texts.language, source.counts["text"]["fertility"], unit, _files(source, texts))


def _sources(corpus: Artifact) -> str:
    lines = []
    for source in corpus.counts["sources"]:
        where = f" ({_address(source['base'])})" if source["base"] else ""
        size = f"{source['kept']:,} documents, {source['words']:,} words"
        lines.append(f"- {plain(source['name'])}{where}: {size}, licence {plain(source['licence'])}")
    counts = corpus.counts
    return (
        f"{counts['kept']:,} documents, {counts['sentences']:,} sentences, {counts['words']:,} words from:\n\n"
        + "\n".join(lines)
        + _evaluation_texts(counts["contamination"])
        + "\n\nThe texts were written by the contributors of these sources, who must be credited as the licence "
        "requires. This card grants no licence for the model; whoever publishes it must choose one that respects "
        "the licences above."
    )


def plain(text: str) -> str:
    """Text from a dump or recipe as a single line, with HTML and Markdown escaped and invisible characters removed."""
    return escape(re.sub(r"([\\`*_{}\[\]()#!|~])", r"\\\1", _one_line(text)), quote=False)


def code(text: str) -> str:
    """Text as a Markdown code span, in which nothing is markup: a backslash before a character would be shown."""
    seen = _one_line(text)
    fence = "`" * (max(map(len, re.findall("`+", seen)), default=0) + 1)
    # A space on both sides is not shown; without it, a backtick of the text would be part of the fence.
    return f"{fence} {seen} {fence}" if "`" in seen else f"{fence}{seen}{fence}"


def _one_line(text: str) -> str:
    # Invisible characters can reverse the direction of text or hide a part of an address.
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _address(text: str) -> str:
    """A web address unchanged, which Markdown turns into a link; anything else as escaped text."""
    # Only what is certainly an address, because readers of a card trust its links.
    return text if re.fullmatch(r"https?://[\w.:/%~+,;=&@-]+", text) else plain(text)


def _evaluation_texts(texts: Mapping[str, Mapping[str, Any]]) -> str:
    """The share of each evaluation text found in the corpus, which users need to know before evaluating this model."""
    return "".join(
        f"\n\nOf the evaluation text {plain(Path(name).name)}, {text['found']:,} of {text['sentences']:,} sentences "
        f"of {_run(text)} or more have {_run(text)} in a row in common with the training text, and "
        f"{text['short_found']:,} "
        f"of {text['short']:,} shorter ones."
        for name, text in texts.items()
    )


def _run(overlap: Mapping[str, Any]) -> str:
    """The length of a run that texts share; artifacts made before runs were of characters do not name it."""
    return str(overlap.get("run", "13 words"))


def _files(examples: Artifact, texts: TextsConfig) -> str:
    """The files that each phase was trained on, with their hashes, and what was held out."""
    parts = [_phase(key, told, examples) for key, told in examples.counts["imported"].items()]
    overlap, licence = examples.counts["heldout_contamination"], plain(texts.licence) or "unknown"
    return "\n\n".join(
        [
            "Examples and tokenised documents that were made elsewhere:",
            *parts,
            f"Licence of the texts: {licence}.",
            f"Of {overlap['sentences']:,} held-out segments of {_run(overlap)} or more, {overlap['found']:,} have "
            f"{_run(overlap)} in a row in common with the training text.",
            "This card grants no licence for the model; whoever publishes it must choose one that respects the "
            "licence of the texts.",
        ]
    )


def _labelled(examples: Artifact, texts: TextsConfig) -> str:
    """The files of labelled texts, with their hashes."""
    counts, files = examples.counts, read_json(examples.file("labelled/facts.json"))["files"]
    rows = [(plain(file["file"]), f"{file['examples']:,}", f"`{file['sha256']}`") for file in files[:MOST_FILES]]
    train, heldout = counts["train"]["examples"], counts["heldout"]
    return (
        f"{train:,} labelled texts to learn from, {heldout['examples']:,} held out, of which "
        f"{heldout['repeated']:,} also occur among the training texts.\n\n"
        + table(rows, ("file", "texts", "SHA-256"))
        + f"\n\nLicence of the texts: {plain(texts.licence) or 'unknown'}. This card grants no licence for the "
        "model; whoever publishes it must choose one that respects the licences of the texts and of the network "
        "it started from."
    )


def _phase(key: str, told: Mapping[str, Any], examples: Artifact) -> str:
    files = read_json(examples.file(f"imported/{key.rpartition('.')[2]}/facts.json"))["files"]
    held = examples.counts["heldout"]["phases"][key]
    unit = "documents" if "documents" in held else "examples"
    where = f"a share of {held['share']:g}" if held["share"] else ", ".join(map(plain, held["files"][:MOST_FILES]))
    rows = [(plain(file["file"]), f"`{file['sha256']}`") for file in files[:MOST_FILES]]
    more = f"\n\nand {len(files) - MOST_FILES:,} more files." if len(files) > MOST_FILES else ""
    return (
        f"Phase {key.rpartition('.')[2]}: {told['examples']:,} examples ({told['kind']}); {held[unit]:,} {unit} are "
        f"held out ({where}).\n\n" + table(rows, ("file", "SHA-256")) + more
    )


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ("", "")) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
