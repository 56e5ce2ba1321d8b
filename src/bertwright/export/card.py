"""The model card: what the model was made of and how well it does, from manifests alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.files import write_atomic

_USE = {
    "BertForPreTraining": "The folder holds the encoder with both pre-training heads: masked tokens, next sentence.",
    "BertForMaskedLM": "The folder holds the encoder with the masked-token head; there is no next-sentence head.",
}


def model_card(
    path: Path,
    name: str,
    corpus: Artifact,
    vocab: Artifact,
    train: Artifact,
    evaluate: Artifact,
    export: Mapping[str, Any],
) -> None:
    """Write the card as README.md; `export` is what the export counted."""
    language = corpus.manifest["config"]["corpus"]["language"]
    parts = [
        f"---\nlanguage: {language}\nlibrary_name: transformers\npipeline_tag: fill-mask\ntags:\n- bert\n---",
        f"# {name}",
        f"A BERT (Devlin et al. 2019) trained on text in the language `{language}`. {_USE[export['architecture']]}",
        *_warnings(train.counts.get("unfinished"), evaluate.counts["untrained"]),
        "## How to load it",
        _loading(export["architecture"]),
        "## Size and training",
        _table(_training(vocab, train, export)),
        "## Scores on held-out documents",
        _scores(evaluate.counts, next_sentence=export["architecture"] == "BertForPreTraining"),
        "## Text",
        _sources(corpus),
        "## Text normalisation",
        _normalisation(vocab),
        "## Where it comes from",
        "Fingerprints (SHA-256 of settings, code version and inputs of each stage):",
        _table([(a.manifest["stage"], f"`{a.fingerprint}`") for a in (corpus, vocab, train, evaluate)]),
    ]
    write_atomic(path, ("\n\n".join(parts) + "\n").encode())


def _warnings(unfinished: Mapping[str, Any] | None, untrained: bool) -> Iterator[str]:
    """What must be known before the model is used."""
    if unfinished is not None:
        yield (
            f"> **Unfinished.** This is the checkpoint `{unfinished['checkpoint']}` of a training that has not ended: "
            f"step {unfinished['step']:,} of {unfinished['steps']:,}. The finished model is another one."
        )
    if untrained:
        yield (
            "> **Untrained.** The held-out loss is that of word frequencies: the model has not learnt to use the "
            "context, and is of no use for other tasks."
        )


def _loading(architecture: str) -> str:
    return (
        "```python\n"
        f"from transformers import AutoTokenizer, {architecture}\n\n"
        'tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")\n'
        f'model = {architecture}.from_pretrained("path/to/this/folder")\n'
        "```\n\n"
        "Use `AutoTokenizer`: it reads `tokenizer.json`, which normalises text as in training. "
        "`BertTokenizer` built from `vocab.txt` alone does not."
    )


def _training(vocab: Artifact, train: Artifact, export: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = train.counts
    return [
        ("parameters", f"{export['parameters']:,}"),
        ("vocabulary", f"{export['vocab_size']:,} WordPiece entries, {vocab.counts['fertility']} tokens per word"),
        ("optimizer steps", f"{counts['steps']:,}"),
        ("sequences seen", f"{counts['sequences_seen']:,}"),
        ("tokens seen", f"{counts['tokens_seen']:,}"),
        ("training time", f"{counts['train_seconds']:,.0f} s, ranks: {counts['ranks']}, device: {counts['device']}"),
        ("logits when reloaded", f"equal to {export['mlm_difference']:.1e} (transformers {export['transformers']})"),
    ]


def _scores(scores: Mapping[str, Any], next_sentence: bool) -> str:
    commonest = f"{scores['commonest_accuracy']:.1%} (commonest token)"
    loss = "NaN" if scores["mlm_loss"] is None else f"{scores['mlm_loss']:.3f}"
    rows = [
        ("masked-token loss (nats)", loss, f"{scores['unigram_loss']:.3f} (unigram)"),
        ("masked-token accuracy", f"{scores['mlm_accuracy']:.1%}", commonest),
    ]
    if next_sentence:
        majority = f"{scores['nsp_majority']:.1%} (commoner label; {scores['nsp_label_share']:.1%} have the label 1)"
        rows.append(("next-sentence accuracy", f"{scores['nsp_accuracy']:.1%}", majority))
    said = f"{scores['predictions']:,} masked tokens in {scores['sequences']:,} sequences that training never saw."
    return said + "\n\n" + _table(rows, ("score", "model", "baseline"))


def _sources(corpus: Artifact) -> str:
    lines = []
    for source in corpus.counts["sources"]:
        where = f" ({_address(source['base'])})" if source["base"] else ""
        size = f"{source['kept']:,} documents, {source['words']:,} words"
        lines.append(f"- {_plain(source['name'])}{where}: {size}, licence {_plain(source['licence'])}")
    counts = corpus.counts
    return (
        f"{counts['kept']:,} documents, {counts['sentences']:,} sentences, {counts['words']:,} words from:\n\n"
        + "\n".join(lines)
        + _evaluation_texts(counts["contamination"])
        + "\n\nThe texts were written by the contributors of these sources, who are to be credited as the licence asks."
        " This card grants no licence for the model; whoever publishes it chooses one that respects the above."
    )


def _plain(text: str) -> str:
    """Words that a dump or a recipe gives, as text of one line: neither HTML nor Markdown, nor what no one sees."""
    seen = "".join(character if character.isprintable() else " " for character in text)
    return escape(re.sub(r"([\\`*_{}\[\]()#!|~])", r"\\\1", " ".join(seen.split())), quote=False)


def _address(text: str) -> str:
    """An address of the web as it stands, which Markdown makes a link of; anything else as plain words."""
    return text if re.fullmatch(r"https?://[\w.:/%~+,;=&@-]+", text) else _plain(text)


def _evaluation_texts(texts: Mapping[str, Mapping[str, Any]]) -> str:
    """What share of texts for evaluation was met in the corpus: who uses them on this model must know."""
    return "".join(
        f"\n\nOf the evaluation text {_plain(Path(name).name)}, {found['found']:,} of {found['sentences']:,} sentences "
        f"of 13 words or more stand in part in the training text, and {found['short_found']:,} of {found['short']:,} "
        "shorter ones."
        for name, found in texts.items()
    )


def _normalisation(vocab: Artifact) -> str:
    case = "Text is lower-cased." if vocab.counts["lower_case"] else "Case is kept."
    accents = "Accents are removed." if vocab.counts["strip_accents"] else "Accents are kept."
    return f"Unicode NFC, control characters removed, CJK ideographs set apart. {case} {accents}"


def _table(rows: Sequence[Sequence[str]], head: Sequence[str] = ("", "")) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
