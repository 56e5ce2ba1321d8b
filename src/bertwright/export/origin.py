"""What the model card says about the texts that a model was made from, from the manifests of their artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.files import read_json
from bertwright.examples.config import TextsConfig
from bertwright.page.markup import Element, address, code, element, p, plain_table

MOST_FILES = 20
"""Maximum number of files per phase listed in the card; the examples artifact lists all."""
MOST_NAMES = 3
"""Maximum number of sources named in a line."""


@dataclass(frozen=True)
class Origin:
    """What the card says about the text."""

    language: str
    """Language code; "" if not known."""
    fertility: float
    """Tokens per word."""
    unit: str
    """What the held-out set consists of: documents, examples or texts."""
    text: list[Element]
    """The section about the text."""
    names: list[str]
    """The names of the sources, or of the files."""

    @property
    def heldout(self) -> str:
        """Names the held-out set, such as "held-out documents of huwiki"."""
        named = ", ".join(self.names[:MOST_NAMES])
        return f"held-out {self.unit}{f' of {named}' if named else ''}"


def origin_of(source: Artifact, vocab: Artifact, texts: TextsConfig) -> Origin:
    """The origin of the text in `source`, a corpus or examples made elsewhere; `texts` has what the files do not
    tell."""
    if source.manifest["stage"] == "corpus":
        language = source.manifest["config"]["corpus"]["language"]
        names = [each["name"] for each in source.counts["sources"]]
        return Origin(language, vocab.counts["fertility"], "documents", _sources(source), names)
    fertility = source.counts["text"]["fertility"]
    if "labels" in source.counts:
        names = [Path(each["file"]).name for each in _labelled_files(source)]
        return Origin(texts.language, fertility, "texts", _labelled(source, texts), names)
    splits = source.counts["heldout"]["phases"].values()
    unit = "documents" if all("documents" in split for split in splits) else "examples"
    return Origin(texts.language, fertility, unit, _files(source, texts), [])


def sources_of(source: Artifact) -> list[tuple[str, str]]:
    """Name and SHA-256 of each source of texts of a corpus, or of each file that examples made elsewhere are in."""
    if source.manifest["stage"] == "corpus":
        # Older corpora do not have the hash of their sources.
        return [(each["name"], each["sha256"]) for each in source.counts["sources"] if "sha256" in each]
    facts = [read_json(source.file(name)) for name in source.names() if name.endswith("facts.json")]
    return [(Path(each["file"]).name, each["sha256"]) for each in (file for found in facts for file in found["files"])]


def weights_of(train: Artifact) -> list[tuple[str, str, str]]:
    """Name, SHA-256 and licence of the weights that a training started from, if it knew where they come from."""
    init = train.counts.get("init") or {}
    known = "source" in init
    return [(init["source"], init.get("sha256", init["fingerprint"]), init.get("licence", ""))] if known else []


def _sources(corpus: Artifact) -> list[Element]:
    lines = []
    for source in corpus.counts["sources"]:
        where = (" (", address(source["base"]), ")") if source["base"] else ""
        size = f"{source['kept']:,} documents, {source['words']:,} words"
        lines.append(element("li", source["name"], where, f": {size}, licence {source['licence']}"))
    counts = corpus.counts
    return [
        p(f"{counts['kept']:,} documents, {counts['sentences']:,} sentences, {counts['words']:,} words from:"),
        element("ul", lines),
        *_evaluation_texts(counts["contamination"]),
        p("The texts were written by the contributors of these sources, who must be credited as the licence requires."),
    ]


def _evaluation_texts(texts: Mapping[str, Mapping[str, Any]]) -> Iterable[Element]:
    """The share of each evaluation text found in the corpus, which users need to know before evaluating this model."""
    return (
        p(
            f"Of the evaluation text {Path(name).name}, {text['found']:,} of {text['sentences']:,} sentences "
            f"of {_run(text)} or more have {_run(text)} in a row in common with the training text, and "
            f"{text['short_found']:,} "
            f"of {text['short']:,} shorter ones."
        )
        for name, text in texts.items()
    )


def _run(overlap: Mapping[str, Any]) -> str:
    """The length of a run that texts share; artifacts made before runs were of characters do not name it."""
    return str(overlap.get("run", "13 words"))


def _files(examples: Artifact, texts: TextsConfig) -> list[Element]:
    """The files that each phase was trained on, with their hashes, and what was held out."""
    overlap = examples.counts["heldout_contamination"]
    return [
        p("Examples and tokenised documents that were made elsewhere:"),
        *(part for key, counts in examples.counts["imported"].items() for part in _phase(key, counts, examples)),
        p(f"Licence of the texts: {texts.licence or 'unknown'}."),
        p(
            f"Of {overlap['sentences']:,} held-out segments of {_run(overlap)} or more, {overlap['found']:,} have "
            f"{_run(overlap)} in a row in common with the training text."
        ),
    ]


def _labelled(examples: Artifact, texts: TextsConfig) -> list[Element]:
    """The files of labelled examples, with their hashes."""
    counts, files = examples.counts, _labelled_files(examples)
    rows = [(file["file"], f"{file['examples']:,}", code(file["sha256"])) for file in files[:MOST_FILES]]
    train, heldout = counts["train"]["examples"], counts["heldout"]
    return [
        p(
            f"{train:,} labelled examples to learn from, {heldout['examples']:,} held out, of which "
            f"{heldout['repeated']:,} also occur among those."
        ),
        plain_table(rows, ("file", "examples", "SHA-256")),
        p(f"Licence of the texts: {texts.licence or 'unknown'}."),
    ]


def _labelled_files(examples: Artifact) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = read_json(examples.file("labelled/facts.json"))["files"]
    return files


def _phase(key: str, counts: Mapping[str, Any], examples: Artifact) -> Iterable[Element]:
    files = read_json(examples.file(f"imported/{key.rpartition('.')[2]}/facts.json"))["files"]
    held = examples.counts["heldout"]["phases"][key]
    unit = "documents" if "documents" in held else "examples"
    where = f"a share of {held['share']:g}" if held["share"] else ", ".join(held["files"][:MOST_FILES])
    yield p(
        f"Phase {key.rpartition('.')[2]}: {counts['examples']:,} examples ({counts['kind']}); {held[unit]:,} {unit} "
        f"are held out ({where})."
    )
    yield plain_table([(file["file"], code(file["sha256"])) for file in files[:MOST_FILES]], ("file", "SHA-256"))
    if len(files) > MOST_FILES:
        yield p(f"and {len(files) - MOST_FILES:,} more files.")
