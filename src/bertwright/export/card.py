"""The model card: how the model was made and how well it performs, from manifests alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.files import write_atomic
from bertwright.core.markup import Content, Element, b, code, element, markdown, p
from bertwright.core.numbers import duration
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.corpus.wikis import wikis
from bertwright.evaluate.shapes import BASELINES, CLASSIFIER_SCORES
from bertwright.evaluate.verdict import model_title, start_of, training_seconds, verdict
from bertwright.examples.labelled.tasks import glue
from bertwright.export.config import Inputs
from bertwright.export.origin import Origin, table
from bertwright.export.shapes import largest_difference
from bertwright.vocab.normalization import MASK

_BERT, _ONE_HEAD = "A BERT (Devlin et al. 2019)", "The folder holds the encoder with the masked-token head"
_USE = {
    "BertForPreTraining": "The folder holds the encoder with both pre-training heads: masked tokens, {task}.",
    "BertForMaskedLM": f"{_ONE_HEAD}; there is no next-sentence head.",
    "ModernBertForMaskedLM": f"{_ONE_HEAD}. It has no segments: only the separator marks the two parts of a pair.",
    "DistilBertForMaskedLM": f"{_ONE_HEAD}. It has no segments: only the separator marks the two parts of a pair. "
    "{learnt}",
}
_ORDER = "sentence order (in the head that transformers names next sentence: 1 says that the segments are swapped)"
_ALONE = "It learned from text like a BERT, not from a larger network (it is not distilled)."
_DISTILLED = (
    "It learned from the predictions of another network as well as from text (distillation, Hinton et al. 2015)."
)
_WHAT = {
    "BertForPreTraining": ("bert", _BERT),
    "BertForMaskedLM": ("bert", _BERT),
    "ModernBertForMaskedLM": ("modernbert", "A ModernBERT (Warner et al. 2024)"),
    "DistilBertForMaskedLM": ("distilbert", "A network of DistilBERT's shape (Sanh et al. 2019)"),
}
_WHAT |= {name.replace("MaskedLM", "SequenceClassification"): what for name, what in _WHAT.items()}
"""The tag of each architecture, and its description."""
_BASE = 110_000_000
"""Parameters of BERT-base (Devlin et al. 2019)."""


def model_card(
    path: Path, name: str, origin: Origin, inputs: Inputs, export: Mapping[str, Any], texts: Sequence[str]
) -> None:
    """Write the card of the model `name` to `path`; `export` has the counts of the export stage, `texts` are held-out
    texts for the example of use."""
    train, counts = inputs.train, inputs.evaluate.counts
    labels = train.counts.get("network", {}).get("labels", [])
    tag, what = _WHAT[export["architecture"]]
    pairs, measured = export["architecture"] == "BertForPreTraining", train.counts.get("heldout", {})
    trained: Content = ("text in the language ", code(origin.language)) if origin.language else "examples"
    blocks = [
        element("h1", model_title(train.manifest, origin.language, labels)),
        # Warnings come first: users of a copied model read the beginning of its card.
        *_warnings(train.counts.get("unfinished"), counts),
        p(
            (b(name), ": ", what[0].lower(), what[1:], " trained on ", "labelled texts" if labels else trained, ". "),
            _use(export["architecture"], inputs),
        ),
        element("h2", "Use"),
        *_example(inputs, labels, texts),
        element("h2", "Limits"),
        element("ul", [element("li", limit) for limit in _limits(origin, inputs, labels)]),
        element("h2", f"Scores on held-out {origin.unit}"),
        *(_of_classifier(counts) if labels else _scores(counts, pairs, measured)),
        element("h2", "Size and training"),
        table(_training(origin, train, export)),
        element("h2", "Text"),
        *origin.text,
        *_earlier_texts(train.counts.get("init")),
        element("h2", "Text normalisation"),
        p(_normalisation(inputs.vocab)),
        element("h2", "Where it comes from"),
        p("Fingerprints (SHA-256 of settings, code version and inputs of each stage):"),
        table(_fingerprints(inputs)),
    ]
    use = "text-classification" if labels else "fill-mask"
    about = {"language": origin.language, "library_name": "transformers", "pipeline_tag": use, "tags": [tag]}
    # Values as JSON, which is YAML: Norwegian's `no` would mean false, and a line of a value could end the block.
    lines = [f"{key}: {json.dumps(value)}" for key, value in about.items() if value]
    write_atomic(path, "\n".join(["---", *lines, "---", "", markdown(blocks), ""]).encode())


def _use(architecture: str, inputs: Inputs) -> Content:
    """What the folder holds, and what the network was trained on."""
    if labels := inputs.train.counts.get("network", {}).get("labels"):
        if len(labels) == 1:
            return "The folder holds the encoder with a head that predicts a number, ", code(labels[0]), "."
        named = [(", " if index else "", code(label)) for index, label in enumerate(labels)]
        return "The folder holds the encoder with a classifier of sequences: ", named, "."
    objective = inputs.train.manifest["config"].get("train", {}).get("objective", {})
    distilled = objective.get("kind") == "distillation"
    order = inputs.evaluate.counts.get("sop_accuracy") is not None
    said = _USE[architecture].format(task=_ORDER if order else "next sentence", learnt="" if distilled else _ALONE)
    # Distillation is always mentioned: users need to know whose answers a model imitates.
    return f"{said.rstrip()} {_DISTILLED}" if distilled else said


def _warnings(unfinished: Mapping[str, Any] | None, scores: Mapping[str, Any]) -> Iterator[Element]:
    """What users must read before using the model, ending with how good it is."""
    if unfinished is not None:
        yield element(
            "blockquote",
            (b("Unfinished."), " This is the checkpoint ", code(unfinished["checkpoint"])),
            f" of a training run that has not ended: step {unfinished['step']:,} of {unfinished['steps']:,}. The "
            "finished model will differ.",
        )
    if scores.get("untrained"):
        yield element("blockquote", b("Untrained."), f" {verdict(scores)} It is not useful for other tasks.")
    else:
        yield p(verdict(scores))


def _example(inputs: Inputs, labels: Sequence[str], texts: Sequence[str]) -> Iterator[Element]:
    """What the model is for, and a program that uses it."""
    if labels:
        does = "predict this number for" if len(labels) == 1 else "classify"
        about, task = f"To {does} texts like those that it was trained on.", "text-classification"
        text = next(iter(texts), "a text")
        first, _, second = text.partition(" | ") if _pairs(inputs) else (text, "", "")
        given = f"{{'text': {first!r}, 'text_pair': {second!r}}}" if _pairs(inputs) else f"[{first!r}]"
        # Without it, some versions apply a sigmoid to a number.
        given += ', function_to_apply="none"' if len(labels) == 1 else ""
        lines = [f"print(model({given}, truncation=True))"]
    else:
        about, task = "To fill in masked words, and to start from for a task of your own.", "fill-mask"
        masked = next((text for text in texts if text.count(MASK) == 1), MASK)
        lines = [f"for guess in model({masked!r}):", "    print(guess['token_str'], guess['score'])"]
    yield p(f"{about} A program for the folder of this card:")
    program = ["from transformers import pipeline", "", f'model = pipeline("{task}", model=".")', *lines]
    yield element("pre", "\n".join(program), class_="python")
    read = (" reads ", code("tokenizer.json"), ", which normalises text as in training. ")
    yield p(code("AutoTokenizer"), read, code("BertTokenizer"), " does not, and refuses this folder.")


def _pairs(inputs: Inputs) -> bool:
    """Whether a classifier reads two texts at a time."""
    objective = inputs.train.manifest["config"]["train"]["objective"]
    return bool(objective.get("pair")) or bool(objective.get("task") and glue(objective["task"]).pairs)


def _limits(origin: Origin, inputs: Inputs, labels: Sequence[str]) -> Iterator[Content]:
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
    if len(labels) > 1:
        yield "It answers one of its classes to every text, also to a text that belongs to none of them."
    elif not labels:
        yield "Its answers are likely, not true, and repeat the errors and prejudices of its texts."


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


def _scores(scores: Mapping[str, Any], next_sentence: bool, trained: Mapping[str, Any]) -> Iterator[Element]:
    commonest = f"{scores['most_common_token_accuracy']:.1%} (commonest token)"
    loss = "NaN" if scores["mlm_loss"] is None else f"{scores['mlm_loss']:.3f}"
    rows = [
        ("masked-token loss (nats)", loss, f"{scores['unigram_loss']:.3f} (unigram)"),
        ("masked-token accuracy", f"{scores['mlm_accuracy']:.1%}", commonest),
    ]
    for task, name in (("nsp", "next-sentence"), ("sop", "sentence-order")) if next_sentence else ():
        # Held-out documents may be too short for a single pair.
        if (accuracy := scores.get(f"{task}_accuracy")) is not None:
            label = f"{scores[f'{task}_label_share']:.1%} have the label 1"
            rows.append(
                (f"{name} accuracy", f"{accuracy:.1%}", f"{scores[f'{task}_majority']:.1%} (commoner label; {label})")
            )
    # The objective's own terms, which are measured only during training.
    if "soft_accuracy" in trained:
        rows.append(("same best guess as the teacher", f"{trained['soft_accuracy']:.1%}", "taken in training"))
    if "hidden_loss" in trained:
        rows.append(
            ("cosine with the teacher's hidden states", f"{1 - trained['hidden_loss']:.3f}", "taken in training")
        )
    yield p(f"{scores['predictions']:,} masked tokens in {scores['sequences']:,} sequences that training never saw.")
    yield table(rows, ("score", "model", "baseline"))


def _of_classifier(scores: Mapping[str, Any]) -> Iterator[Element]:
    """A row for each score, with the score of a constant answer."""
    losses = {"classification_loss": "loss (nats)", "regression_loss": "mean squared error"}
    rows = []
    for name, title in {**CLASSIFIER_SCORES, **losses}.items():
        if name in scores:
            value, baseline = scores[name], scores.get(BASELINES.get(name, ""), 0.0)
            rows.append((title, "undefined" if value is None else f"{value:.4f}", f"{baseline:.4f}"))
    yield p(f"{scores['sequences']:,} texts that training never saw. The baseline is a constant answer.")
    yield table(rows, ("score", "model", "baseline"))
    if answered := scores.get("answered"):
        yield p("How often each class was answered:")
        yield table([(code(label), f"{count:,}") for label, count in answered.items()], ("class", "texts"))


def _normalisation(vocab: Artifact) -> str:
    case = "Text is lower-cased." if vocab.counts["lower_case"] else "Case is kept."
    accents = "Accents are removed." if vocab.counts["strip_accents"] else "Accents are kept."
    return f"Unicode NFC, control characters removed, CJK ideographs set apart. {case} {accents}"
