"""The model card: what texts a model was made from, how it was made and how well it performs, from manifests alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.files import write_atomic
from bertwright.core.numbers import duration
from bertwright.core.provenance import PROVENANCE
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.corpus.wikis import wikis
from bertwright.export.certify.shapes import Certificate
from bertwright.export.certify.table import certificate_section
from bertwright.export.config import ExportConfig, Inputs
from bertwright.export.metadata import front_matter, metadata
from bertwright.export.origin import Origin
from bertwright.export.shapes import largest_difference
from bertwright.model.interop.names import TASKS
from bertwright.page.markup import Content, Element, address, b, code, element, markdown, p, plain_table
from bertwright.tasks.members import task_of_sealed
from bertwright.tasks.section import TaskSection
from bertwright.tasks.title import model_title, start_of, training_seconds

_BERT = "A BERT (Devlin et al. 2019)"
_WHAT = {
    "BertForPreTraining": ("bert", _BERT),
    "BertForMaskedLM": ("bert", _BERT),
    "ModernBertForMaskedLM": ("modernbert", "A ModernBERT (Warner et al. 2024)"),
    "DistilBertForMaskedLM": ("distilbert", "A network of DistilBERT's shape (Sanh et al. 2019)"),
}
_WHAT |= {name.replace("MaskedLM", task): what for task in TASKS.values() for name, what in _WHAT.items()}
"""The tag of each architecture, and its description."""
_WHAT |= {name.replace("ForMaskedLM", "Model"): what for name, what in _WHAT.items() if name.endswith("ForMaskedLM")}
_BASE = 110_000_000
"""Parameters of BERT-base (Devlin et al. 2019)."""


@dataclass(frozen=True)
class Checked:
    """What the export wrote and found."""

    counts: Mapping[str, Any]
    """Of the export stage."""
    texts: Sequence[str]
    """Held-out texts, for the example of use."""
    certificate: Certificate | None = None
    """How other runtimes answer."""


def model_card(path: Path, config: ExportConfig, origin: Origin, inputs: Inputs, checked: Checked) -> None:
    """Write the card of the model that `config` names to `path`."""
    export, texts, certificate = checked.counts, checked.texts, checked.certificate
    train, counts = inputs.train, inputs.evaluate.counts
    section = task_of_sealed(train.manifest["config"]).section
    tag, what = _WHAT[export["architecture"]]
    trained: Content = ("text in the language ", code(origin.language)) if origin.language else "examples"
    trained = section.material if section.trained_on() else trained
    blocks: list[Content] = [
        element("h1", model_title(train.manifest, origin.language)),
        # Warnings come first: users of a copied model read the beginning of its card.
        *_warnings(train.counts.get("unfinished"), counts, section.verdict(counts)),
        p(
            (b(config.name), ": ", what[0].lower(), what[1:], " trained on ", trained, ". "),
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
        *([element("h2", "In other programs"), *certificate_section(certificate)] if certificate else []),
        element("h2", "Text"),
        *origin.text,
        *_earlier_texts(train.counts.get("init")),
        element("h2", "Licence"),
        p(*_licence(config, train.counts.get("init"))),
        element("h2", "Text normalisation"),
        p(_normalisation(inputs.vocab)),
        element("h2", "Where it comes from"),
        p(
            "Fingerprints (SHA-256 of settings, code version and inputs of each stage). ",
            code(PROVENANCE),
            " has what they are computed from, with the SHA-256 of the sources of the texts and of each file here; ",
            code("bertwright inspect . --verify"),
            " checks all of it.",
        ),
        plain_table(_fingerprints(inputs)),
    ]
    about = metadata(config, origin, section, tag, counts, train.counts.get("init"))
    write_atomic(path, "\n".join([*front_matter(about), "", markdown(blocks), ""]).encode())


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
    """What is known of the network that training started from: its name and licence, and nothing of its texts."""
    if init is not None:
        named = (" (", code(init["source"]), ")") if "source" in init else ""
        licence = f" Its licence is {init['licence']}; it" if "licence" in init else " Its licence"
        yield p(
            "Training started from ",
            code(init["folder"]),
            named,
            f", whose texts this card does not describe.{licence}, and theirs, must be respected too.",
        )


def _licence(config: ExportConfig, init: Mapping[str, str] | None) -> Iterator[Content]:
    """The licence of the model: the one that its recipe states, or none."""
    if config.licence:
        yield "Who made this model states its licence: "
        yield config.licence
        yield (" (", address(config.licence_link), ").") if config.licence_link else "."
    else:
        network = " and of the network it started from" if init else ""
        yield (
            "This card grants no licence for the model; whoever publishes it must choose one that respects the "
            f"licences of the texts{network}."
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
        (
            f"{'hidden states' if 'hidden_difference' in export else 'logits'} when reloaded",
            f"equal to {largest_difference(export):.1e} (transformers {export['transformers']})",
        ),
    ]


def _normalisation(vocab: Artifact) -> str:
    case = "Text is lower-cased." if vocab.counts["lower_case"] else "Case is kept."
    accents = "Accents are removed." if vocab.counts["strip_accents"] else "Accents are kept."
    return f"Unicode NFC, control characters removed, CJK ideographs set apart. {case} {accents}"
