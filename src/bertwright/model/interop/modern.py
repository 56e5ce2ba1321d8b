"""Conversion of tensor names and configuration to and from Hugging Face's `ModernBertForMaskedLM` or, with labels,
the class of their task, such as `ModernBertForSequenceClassification`."""

from __future__ import annotations

from typing import Any

from bertwright.model.family import Labels
from bertwright.model.interop.names import Names, architecture, classes
from bertwright.model.modern.network import ModernConfig

_ENCODER = (
    ("modern.embeddings.token", "model.embeddings.tok_embeddings"),
    ("modern.embeddings.norm", "model.embeddings.norm"),
    ("modern.layers.{}.attention.norm", "model.layers.{}.attn_norm"),
    ("modern.layers.{}.attention.qkv", "model.layers.{}.attn.Wqkv"),
    ("modern.layers.{}.attention.output", "model.layers.{}.attn.Wo"),
    ("modern.layers.{}.feed_forward.norm", "model.layers.{}.mlp_norm"),
    ("modern.layers.{}.feed_forward.inner", "model.layers.{}.mlp.Wi"),
    ("modern.layers.{}.feed_forward.output", "model.layers.{}.mlp.Wo"),
    ("modern.norm", "model.final_norm"),
)
NAMES = Names(
    what="a ModernBERT with the masked-token head",
    pairs=(
        *_ENCODER,
        ("mlm.transform", "head.dense"),
        ("mlm.norm", "head.norm"),
        ("mlm", "decoder"),
    ),
    base="model",
    embedding="modern.embeddings.token.weight",
    tied={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
)
CLASSIFIER = Names(
    what="a ModernBERT with a classifier of sequences",
    pairs=(
        *_ENCODER,
        ("classification.transform", "head.dense"),
        ("classification.norm", "head.norm"),
        ("classification.classifier", "classifier"),
    ),
    base="model",
    embedding=NAMES.embedding,
    span="classifier",
)


def _classifier(labels: Labels) -> dict[str, Any]:
    # text-embeddings-inference does not count the classes by their names.
    return {"classifier_pooling": "cls", "num_labels": len(labels)}


CONSTANT = {
    "attention_bias": False,
    "mlp_bias": False,
    "norm_bias": False,
    "classifier_bias": False,
    "classifier_activation": "gelu",
}
"""What transformers assumes of each of these networks, and text-embeddings-inference requires a file to state."""


def hf_config(config: ModernConfig, vocab_size: int | None = None) -> dict[str, Any]:
    """Return the Hugging Face config.json of the same network, with `vocab_size` rows if padding was removed.

    Uses the keys of transformers 4, which version 5 also reads.
    """
    return {
        "architectures": [architecture("ModernBert", config)],
        "model_type": "modernbert",
        **config.model_dump(exclude={"labels", "head"}),
        "vocab_size": vocab_size or config.vocab_size,
        **CONSTANT,
        "layer_norm_eps": config.norm_eps,  # read by candle
        **({**classes(config.labels, config.head), **_classifier(config.labels)} if config.labels else {}),
    }
