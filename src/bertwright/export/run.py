"""The stage `export`: a trained model in, a folder `hf/` out that stock `transformers` loads, verified by doing so."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import MissingExtraError
from bertwright.core.files import make_folder, read_typed
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.evaluate.shapes import PREDICTIONS
from bertwright.examples.config import TextsConfig
from bertwright.export.card import model_card
from bertwright.export.config import VERSION, ExportConfig, Inputs, sections
from bertwright.export.folder import write_hf_folder
from bertwright.export.origin import origin_of
from bertwright.export.shapes import largest_difference
from bertwright.export.verify import compare_model, compare_tokenizer
from bertwright.model.interop.peer import peer_of
from bertwright.model.saved import load_network
from bertwright.vocab.check_same_vocabulary import check_same_vocabulary
from bertwright.vocab.tokenizer import load_tokenizer


def run(config: ExportConfig, inputs: Inputs, context: StageContext, texts: TextsConfig | None = None) -> Artifact:
    """The exported model; its counts say how far the reloaded folder is from the trained model.

    The model card takes the language and licence of the texts from the corpus, which `inputs.source` is. Where there is
    none, that is the examples, and `texts` says what their files do not.

    Raises `ArtifactError` when the folder does not load or gives other token ids or logits than the trained model,
    and `MissingExtraError`, before anything is written, when `transformers` is not installed.
    """
    exported = identity(config, inputs.fingerprints, texts)
    about = texts or TextsConfig()
    return build(context.out, exported, context.log, lambda draft: _make(config, inputs, about, draft, context.log))


def identity(config: ExportConfig, inputs: Mapping[str, str], texts: TextsConfig | None = None) -> Identity:
    """What the folder is a function of; `inputs` has the fingerprints of "train", "vocab", "evaluate", and of "corpus"
    or, where there is none, of "examples"."""
    with_corpus = "corpus" in inputs
    names = ("train", "vocab", "evaluate", "corpus" if with_corpus else "examples")
    settings = sections(config, None if with_corpus else texts or TextsConfig())
    return Identity("export", VERSION, settings, {name: inputs[name] for name in names})


def _make(config: ExportConfig, inputs: Inputs, texts: TextsConfig, draft: Path, log: Log) -> dict[str, Any]:
    train, vocab = inputs.train, inputs.vocab
    # Before anything is written: a folder that was not verified must not lie there as if it had been.
    if find_spec("transformers") is None:
        raise MissingExtraError(
            "export verifies its folder with transformers; install it: pip install 'bertwright[hf]'"
        )
    check_same_vocabulary(train, vocab)
    for name in train.names("model/"):
        train.file(name)
    model, tokenizer = load_network(train.path / "model"), load_tokenizer(vocab)
    hf = make_folder(draft / "hf")
    size = write_hf_folder(hf, model, vocab)
    # Text of this language with a mask in it, beside the probes that are the same for every model.
    lines = [line["text"] for line in read_typed(inputs.evaluate.file("predictions.json"), PREDICTIONS)]
    compared = compare_tokenizer(hf, tokenizer, lines, peer_of(model.config).segments)
    differences = compare_model(hf, model, tokenizer, lines, config.tolerance)
    log.say(f"export: transformers {differences['transformers']} agrees to {largest_difference(differences):.1e}")
    counts = {**size, "texts_compared": compared, **differences}
    if note := train.counts.get("unfinished"):
        counts["unfinished"] = note
    # Last, as it says how far the reloaded model is from the trained one.
    model_card(hf / "README.md", config.name, origin_of(inputs.source, vocab, texts), inputs, counts)
    return counts
