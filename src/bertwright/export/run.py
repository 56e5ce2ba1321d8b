"""The stage `export`: writes a trained model to a folder `hf/` and verifies that stock `transformers` loads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.files import make_folder, read_typed, remove, write_json
from bertwright.core.log import Log
from bertwright.core.provenance import write_provenance
from bertwright.core.stage_context import StageContext
from bertwright.evaluate.shapes import PREDICTIONS
from bertwright.examples.config import TextsConfig
from bertwright.export.card import Checked, model_card
from bertwright.export.certify.lines import Lines, heldout_lines, vocabulary_lines
from bertwright.export.certify.measure import Job, run_job
from bertwright.export.certify.run import certify
from bertwright.export.certify.shapes import CERTIFICATE
from bertwright.export.config import VERSION, ExportConfig, Inputs, sections
from bertwright.export.folder import write_hf_folder
from bertwright.export.origin import origin_of, sources_of, weights_of
from bertwright.export.runtimes.members import runtime_named
from bertwright.export.runtimes.runtime import Published
from bertwright.export.shapes import largest_difference
from bertwright.export.verify import compare_model, compare_tokenizer
from bertwright.model.interop.peer import peer_of
from bertwright.model.saved import load_network
from bertwright.tasks.members import task_of_sealed
from bertwright.vocab.load import check_same_vocabulary
from bertwright.vocab.tokenizer import load_tokenizer


def run(
    config: ExportConfig,
    inputs: Inputs,
    context: StageContext,
    texts: TextsConfig | None = None,
    heldout: float = 0.0,
) -> Artifact:
    """Export the model; the artifact's counts report the difference between reloaded folder and trained model.

    The model card takes the language and licence of the texts from the corpus in `inputs.source`. Without a corpus,
    `inputs.source` is the examples, and `texts` has what their files do not tell. `heldout` is the share of a corpus's
    documents that a certificate takes its lines from.

    Raises `ArtifactError` if the folder does not load or produces other token ids or logits than the trained model,
    and `MissingExtraError`, before anything is written, if `transformers` or what a format needs is not installed.
    """
    exported = identity(config, inputs.fingerprints, texts)
    about = texts or TextsConfig()
    return build(
        context.out, exported, context.log, lambda draft: _make(config, inputs, about, heldout, draft, context.log)
    )


def identity(config: ExportConfig, inputs: Mapping[str, str], texts: TextsConfig | None = None) -> Identity:
    """What determines the folder; `inputs` has the fingerprints of "train", "vocab", "evaluate", and of "corpus" or,
    without a corpus, of "examples"."""
    with_corpus = "corpus" in inputs
    names = ("train", "vocab", "evaluate", "corpus" if with_corpus else "examples")
    settings = sections(config, None if with_corpus else texts or TextsConfig())
    return Identity("export", VERSION, settings, {name: inputs[name] for name in names})


def refuse_missing_packages(config: ExportConfig) -> None:
    """Raise `MissingExtraError` if a package is missing that verifies the folder or writes one of its formats."""
    if find_spec("transformers") is None:
        raise MissingExtraError("export needs transformers to verify the exported folder: pip install 'bertwright[hf]'")
    for name in config.formats:
        if missing := runtime_named(name).missing_to_write():
            raise MissingExtraError(f"export.formats has {name}: {missing}")


def _make(
    config: ExportConfig, inputs: Inputs, texts: TextsConfig, heldout: float, draft: Path, log: Log
) -> dict[str, Any]:
    # Before anything is written: an unverified folder must not look like a verified one.
    refuse_missing_packages(config)
    train, vocab = inputs.train, inputs.vocab
    check_same_vocabulary(train, vocab)
    for name in train.names("model/"):
        train.file(name)
    model, tokenizer = load_network(train.path / "model"), load_tokenizer(vocab)
    if (hf := draft / "hf").is_dir():  # of an attempt that was killed
        remove(hf)
    make_folder(hf)
    size = write_hf_folder(hf, model, vocab, task_of_sealed(train.manifest["config"]).section.prompts)
    # Texts of this language with a mask, in addition to the probes that are the same for every model.
    lines = [line["text"] for line in read_typed(inputs.evaluate.file("predictions.json"), PREDICTIONS)]
    compared = compare_tokenizer(hf, tokenizer, lines, peer_of(model.config).segments)
    differences = compare_model(hf, model, tokenizer, lines, config.tolerance)
    log.say(f"export: transformers {differences['transformers']} agrees to {largest_difference(differences):.1e}")
    counts = {**size, "texts_compared": compared, **differences}
    if note := train.counts.get("unfinished"):
        counts["unfinished"] = note
    write_formats(hf, config.formats, log)
    certificate = None
    if config.certify:
        certificate = certify(hf, _lines(inputs, heldout, tokenizer.vocabulary), (), log)
        write_json(hf / CERTIFICATE, certificate)
    # After them, because the card reports what was found.
    checked = Checked(counts, lines, certificate)
    model_card(hf / "README.md", config, origin_of(inputs.source, vocab, texts), inputs, checked)
    # Last, because it has the hash of every other file.
    stages = (inputs.source, vocab, train, inputs.evaluate)
    write_provenance(hf, stages, sources_of(inputs.source), weights_of(train))
    return counts


def write_formats(hf: Path, formats: Sequence[str], log: Log) -> None:
    """Write the files of the runtimes named by `formats` into their folders of the published folder `hf`.

    Raises `RecipeError`, before the first is written, if one of them cannot run the model.
    """
    model, runtimes = Published(hf), [runtime_named(name) for name in formats]
    for runtime in runtimes:
        if why := runtime.refusal(model):
            raise RecipeError(f"export.formats has {runtime.name}, but {why}. Leave it out.")
    for runtime in runtimes:
        # In a process of its own: libraries of runtimes change theirs, such as the stack for signals (OpenVINO).
        run_job(Job(runtime.name, str(hf), str(make_folder(hf / runtime.folder))), runtime.title)
        log.say(f"export: {runtime.folder}/ is for {runtime.title} {runtime.version()}")


def _lines(inputs: Inputs, heldout: float, entries: Sequence[str]) -> Lines:
    """Sentences that the model has not learned from; without a corpus, words of its vocabulary."""
    corpus = inputs.source if inputs.source.manifest["stage"] == "corpus" else None
    return (corpus and heldout_lines(corpus, heldout)) or vocabulary_lines(entries)
