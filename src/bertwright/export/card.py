"""The model card: what texts a model was made from, how it was made and how well it performs, from manifests alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.files import read_json, write_atomic
from bertwright.core.numbers import duration
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.corpus.wikis import wikis
from bertwright.examples.config import TextsConfig
from bertwright.export.config import Inputs
from bertwright.export.shapes import largest_difference
from bertwright.model.interop.names import TASKS
from bertwright.page.markup import Content, Element, address, b, code, element, markdown, p, plain_table
from bertwright.tasks.members import task_of_sealed
from bertwright.tasks.section import TaskSection
from bertwright.tasks.title import model_title, start_of, training_seconds

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
    """What the held-out set consists of: documents, examples or texts."""
    text: list[Element]
    """The section about the text."""


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
        p(
            "The texts were written by the contributors of these sources, who must be credited as the licence "
            "requires. This card grants no licence for the model; whoever publishes it must choose one that respects "
            "the licences above."
        ),
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
        p(
            "This card grants no licence for the model; whoever publishes it must choose one that respects the "
            "licence of the texts."
        ),
    ]


def _labelled(examples: Artifact, texts: TextsConfig) -> list[Element]:
    """The files of labelled examples, with their hashes."""
    counts, files = examples.counts, read_json(examples.file("labelled/facts.json"))["files"]
    rows = [(file["file"], f"{file['examples']:,}", code(file["sha256"])) for file in files[:MOST_FILES]]
    train, heldout = counts["train"]["examples"], counts["heldout"]
    return [
        p(
            f"{train:,} labelled examples to learn from, {heldout['examples']:,} held out, of which "
            f"{heldout['repeated']:,} also occur among those."
        ),
        plain_table(rows, ("file", "examples", "SHA-256")),
        p(
            f"Licence of the texts: {texts.licence or 'unknown'}. This card grants no licence for the model; whoever "
            "publishes it must choose one that respects the licences of the texts and of the network it started from."
        ),
    ]


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


_BERT = "A BERT (Devlin et al. 2019)"
_WHAT = {
    "BertForPreTraining": ("bert", _BERT),
    "BertForMaskedLM": ("bert", _BERT),
    "ModernBertForMaskedLM": ("modernbert", "A ModernBERT (Warner et al. 2024)"),
    "DistilBertForMaskedLM": ("distilbert", "A network of DistilBERT's shape (Sanh et al. 2019)"),
}
_WHAT |= {name.replace("MaskedLM", task): what for task in TASKS.values() for name, what in _WHAT.items()}
"""The tag of each architecture, and its description."""
_BASE = 110_000_000
"""Parameters of BERT-base (Devlin et al. 2019)."""


def model_card(
    path: Path, name: str, origin: Origin, inputs: Inputs, export: Mapping[str, Any], texts: Sequence[str]
) -> None:
    """Write the card of the model `name` to `path`; `export` has the counts of the export stage, `texts` are held-out
    texts for the example of use."""
    train, counts = inputs.train, inputs.evaluate.counts
    section = task_of_sealed(train.manifest["config"]).section
    tag, what = _WHAT[export["architecture"]]
    trained: Content = ("text in the language ", code(origin.language)) if origin.language else "examples"
    trained = "labelled texts" if section.trained_on() else trained
    blocks = [
        element("h1", model_title(train.manifest, origin.language)),
        # Warnings come first: users of a copied model read the beginning of its card.
        *_warnings(train.counts.get("unfinished"), counts, section.verdict(counts)),
        p(
            (b(name), ": ", what[0].lower(), what[1:], " trained on ", trained, ". "),
            section.holds(export["architecture"], counts),
        ),
        element("h2", "Use"),
        *_example(section, texts),
        element("h2", "Limits"),
        element("ul", [element("li", limit) for limit in _limits(origin, inputs, section)]),
        element("h2", f"Scores on held-out {origin.unit}"),
        *section.score_table(export["architecture"], counts, train.counts),
        *section.tables(counts),
        element("h2", "Size and training"),
        plain_table(_training(origin, train, export)),
        element("h2", "Text"),
        *origin.text,
        *_earlier_texts(train.counts.get("init")),
        element("h2", "Text normalisation"),
        p(_normalisation(inputs.vocab)),
        element("h2", "Where it comes from"),
        p("Fingerprints (SHA-256 of settings, code version and inputs of each stage):"),
        plain_table(_fingerprints(inputs)),
    ]
    about = {
        "language": origin.language,
        "library_name": "transformers",
        "pipeline_tag": section.pipeline,
        "tags": [tag],
    }
    # Values as JSON, which is YAML: Norwegian's `no` would mean false, and a line of a value could end the block.
    lines = [f"{key}: {json.dumps(value)}" for key, value in about.items() if value]
    write_atomic(path, "\n".join(["---", *lines, "---", "", markdown(blocks), ""]).encode())


def _warnings(unfinished: Mapping[str, Any] | None, scores: Mapping[str, Any], verdict: str) -> Iterator[Element]:
    """What users must read before using the model, ending with how good it is."""
    if unfinished is not None:
        yield element(
            "blockquote",
            (b("Unfinished."), " This is the checkpoint ", code(unfinished["checkpoint"])),
            f" of a training run that has not ended: step {unfinished['step']:,} of {unfinished['steps']:,}. The "
            "finished model will differ.",
        )
    if scores.get("untrained"):
        yield element("blockquote", b("Untrained."), f" {verdict} It is not useful for other tasks.")
    else:
        yield p(verdict)


def _example(section: TaskSection, texts: Sequence[str]) -> Iterator[Element]:
    """What the model is for, and a program that uses it."""
    yield p(f"{section.purpose} A program for the folder of this card:")
    program = [*section.load(), *section.program(texts)]
    yield element("pre", "\n".join(program), class_="python")
    read = (" reads ", code("tokenizer.json"), ", which normalises text as in training. ")
    yield p(code("AutoTokenizer"), read, code("BertTokenizer"), " does not, and refuses this folder.")


def _limits(origin: Origin, inputs: Inputs, section: TaskSection) -> Iterator[Content]:
    """What the model cannot do, for people who consider using it."""
    counts = inputs.train.counts
    if positions := counts.get("network", {}).get("max_position_embeddings"):
        words = int(positions / max(origin.fertility, 1))
        yield f"It reads at most {positions:,} tokens at a time, about {words:,} words."
    language = f" in {wikis()[origin.language]}" if origin.language in wikis() else ""
    if counts.get("init"):
        yield f"It was tested only on texts like those below{language}."
    else:
        yield f"It knows only texts like those below{language}. On other kinds of text it was not tested."
    if counts.get("parameters", _BASE) < _BASE / 2:
        yield f"It is small: it has {counts['parameters']:,} weights, a BERT-base about {_BASE:,}."
    if section.limit:
        yield section.limit


def _earlier_texts(init: Mapping[str, str] | None) -> Iterator[Element]:
    """What is known of the texts of the network that training started from: only its name."""
    if init is not None:
        yield p(
            "Training started from ",
            code(init["folder"]),
            ", whose texts this card does not describe. Its licence, and theirs, must be respected too.",
        )


def _fingerprints(inputs: Inputs) -> list[tuple[Content, ...]]:
    fingerprints = inputs.fingerprints
    return [(stage, code(fingerprints[stage])) for stage in STAGE_NAMES if stage in fingerprints]


def _training(origin: Origin, train: Artifact, export: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts, took = train.counts, duration(training_seconds(train.counts))
    return [
        ("started from", start_of(counts.get("init"))),
        ("parameters", f"{export['parameters']:,}"),
        ("vocabulary", f"{export['vocab_size']:,} WordPiece entries, {origin.fertility} tokens per word"),
        ("optimizer steps", f"{counts['steps']:,}"),
        ("sequences seen", f"{counts['sequences_seen']:,}"),
        ("tokens seen", f"{counts['tokens_seen']:,}"),
        ("training time", f"{took}, ranks: {counts['ranks']}, device: {counts['device']}"),
        ("logits when reloaded", f"equal to {largest_difference(export):.1e} (transformers {export['transformers']})"),
    ]


def _normalisation(vocab: Artifact) -> str:
    case = "Text is lower-cased." if vocab.counts["lower_case"] else "Case is kept."
    accents = "Accents are removed." if vocab.counts["strip_accents"] else "Accents are kept."
    return f"Unicode NFC, control characters removed, CJK ideographs set apart. {case} {accents}"
