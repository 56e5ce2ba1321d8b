"""Conversion of tensor names and configuration to and from Hugging Face's BERT.

The counterpart is `BertForMaskedLM`, and with labels the class of their task, such as `BertForSequenceClassification`.
With a next-sentence head it is `BertForPreTraining`, but a file names `BertForMaskedLM`, as those of published BERTs
do, because some programs know only that one; either class reads the tensors. Both directions are guaranteed:
`NAMES.to_ours` is the inverse of `NAMES.to_theirs` and reads published models, so weights are never locked in to this
project.
"""

from __future__ import annotations

from typing import Any

from bertwright.model.bert.network import BertConfig
from bertwright.model.interop.names import Names, architecture, classes

_ENCODER = (
    ("bert.embeddings.token", "bert.embeddings.word_embeddings"),
    ("bert.embeddings.position", "bert.embeddings.position_embeddings"),
    ("bert.embeddings.segment", "bert.embeddings.token_type_embeddings"),
    ("bert.embeddings.norm", "bert.embeddings.LayerNorm"),
    ("bert.layers.{}.attention.query", "bert.encoder.layer.{}.attention.self.query"),
    ("bert.layers.{}.attention.key", "bert.encoder.layer.{}.attention.self.key"),
    ("bert.layers.{}.attention.value", "bert.encoder.layer.{}.attention.self.value"),
    ("bert.layers.{}.attention.output", "bert.encoder.layer.{}.attention.output.dense"),
    ("bert.layers.{}.attention.norm", "bert.encoder.layer.{}.attention.output.LayerNorm"),
    ("bert.layers.{}.feed_forward.inner", "bert.encoder.layer.{}.intermediate.dense"),
    ("bert.layers.{}.feed_forward.output", "bert.encoder.layer.{}.output.dense"),
    ("bert.layers.{}.feed_forward.norm", "bert.encoder.layer.{}.output.LayerNorm"),
    ("bert.pooler.dense", "bert.pooler.dense"),
)
NAMES = Names(
    what="a BERT with pre-training heads",
    pairs=(
        *_ENCODER,
        ("mlm.transform", "cls.predictions.transform.dense"),
        ("mlm.norm", "cls.predictions.transform.LayerNorm"),
        ("mlm", "cls.predictions"),
        ("nsp.classifier", "cls.seq_relationship"),
    ),
    base="bert",
    embedding="bert.embeddings.token.weight",
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    # A buffer of older versions with the numbers 0 to 511; transformers recreates it.
    made_anew=("bert.embeddings.position_ids",),
)
CLASSIFIER = Names(
    what="a BERT with a classifier of sequences",
    pairs=(*_ENCODER, ("classification.classifier", "classifier")),
    base="bert",
    embedding=NAMES.embedding,
    made_anew=NAMES.made_anew,
)


def hf_config(config: BertConfig, vocab_size: int | None = None) -> dict[str, Any]:
    """Return the Hugging Face config.json of the same network, with `vocab_size` rows if padding was removed."""
    return {
        "architectures": [architecture("Bert", config)],
        "model_type": "bert",
        **config.model_dump(exclude={"next_sentence", "labels", "head"}),
        "vocab_size": vocab_size or config.vocab_size,
        **(classes(config.labels, config.head) if config.labels else {}),
    }
