"""Conversion of tensor names and configuration to and from Hugging Face's `DistilBertForMaskedLM` or, with labels,
the class of their task, such as `DistilBertForSequenceClassification`."""

from __future__ import annotations

from typing import Any

from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.interop.names import Names, architecture, classes

_ENCODER = (
    ("distilbert.embeddings.token", "distilbert.embeddings.word_embeddings"),
    ("distilbert.embeddings.position", "distilbert.embeddings.position_embeddings"),
    ("distilbert.embeddings.norm", "distilbert.embeddings.LayerNorm"),
    ("distilbert.layers.{}.attention.query", "distilbert.transformer.layer.{}.attention.q_lin"),
    ("distilbert.layers.{}.attention.key", "distilbert.transformer.layer.{}.attention.k_lin"),
    ("distilbert.layers.{}.attention.value", "distilbert.transformer.layer.{}.attention.v_lin"),
    ("distilbert.layers.{}.attention.output", "distilbert.transformer.layer.{}.attention.out_lin"),
    ("distilbert.layers.{}.attention.norm", "distilbert.transformer.layer.{}.sa_layer_norm"),
    ("distilbert.layers.{}.feed_forward.inner", "distilbert.transformer.layer.{}.ffn.lin1"),
    ("distilbert.layers.{}.feed_forward.output", "distilbert.transformer.layer.{}.ffn.lin2"),
    ("distilbert.layers.{}.feed_forward.norm", "distilbert.transformer.layer.{}.output_layer_norm"),
)
NAMES = Names(
    what="a DistilBERT with the masked-token head",
    pairs=(
        *_ENCODER,
        ("mlm.transform", "vocab_transform"),
        ("mlm.norm", "vocab_layer_norm"),
        ("mlm", "vocab_projector"),
    ),
    base="distilbert",
    embedding="distilbert.embeddings.token.weight",
    tied={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
)
CLASSIFIER = Names(
    what="a DistilBERT with a classifier of sequences",
    pairs=(
        *_ENCODER,
        ("classification.transform", "pre_classifier"),
        ("classification.classifier", "classifier"),
    ),
    base="distilbert",
    embedding=NAMES.embedding,
)


def hf_config(config: DistilBertConfig, vocab_size: int | None = None) -> dict[str, Any]:
    """Return the Hugging Face config.json of the same network, with `vocab_size` rows if padding was removed."""
    return {
        "architectures": [architecture("DistilBert", config)],
        "model_type": "distilbert",
        **config.model_dump(exclude={"labels", "head"}),
        "vocab_size": vocab_size or config.vocab_size,
        **(
            {**classes(config.labels, config.head), "seq_classif_dropout": config.classifier_dropout}
            if config.labels
            else {}
        ),
    }
